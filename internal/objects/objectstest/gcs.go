package objectstest

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-io/signet/internal/objects"
)

// Token is the one that a server of Google's kind takes.
const Token = "canary-token"

// GCSAccount signs requests to it.
const GCSAccount = "signer@test.iam.gserviceaccount.com"

// googleKey is the account's.
var googleKey = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

// StartGCS runs a server that speaks Google's XML API: generations, x-goog headers, tokens and V4 signatures, which it checks. It refuses what that API does not know. Its bucket
// is Bucket.
func StartGCS(t testing.TB) *Server {
	t.Helper()
	s := Start(t)
	g := &google{generations: map[string]int64{}}
	s.words = g.serve
	return s
}

// GCSKey is the service account's key, as Google hands it out. Tokens come from the server.
func (s *Server) GCSKey(t testing.TB) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(googleKey())
	if err != nil {
		t.Fatal(err)
	}
	key, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": GCSAccount, "private_key_id": "1", "token_uri": s.URL + tokenPath,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(key)
}

// GCSProps lead a client to the server, with the account's key.
func (s *Server) GCSProps(t testing.TB) objects.Props {
	return objects.Props{"gcs.service.host": s.URL, "gcs.jsonkey": s.GCSKey(t)}
}

// paths that are no objects.
const (
	tokenPath = "/-/token"
	signPath  = "/v1/projects/-/serviceAccounts/" + GCSAccount + ":signBlob"
)

// google says the requests of GCS in the words of S3.
type google struct {
	mu          sync.Mutex
	last        int64
	generations map[string]int64
}

func (g *google) serve(w http.ResponseWriter, r *http.Request, s3 http.HandlerFunc) {
	switch r.URL.Path {
	case tokenPath:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":%q,"expires_in":3600,"token_type":"Bearer"}`, Token)
		return
	case signPath:
		g.signBlob(w, r)
		return
	}
	if status, code := g.allowed(r); status != 0 {
		(&Fault{Status: status, Code: code}).answer(w, r)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	q, changes := r.URL.Query(), r.Method != http.MethodGet && r.Method != http.MethodHead
	in := r.Clone(r.Context())
	in.Header = http.Header{}
	for name, values := range r.Header {
		if key, ok := strings.CutPrefix(name, "X-Goog-Meta-"); ok {
			in.Header["X-Amz-Meta-"+key] = values
		} else if !strings.HasPrefix(name, "X-Goog-") && name != "Authorization" {
			in.Header[name] = values
		}
	}
	for name := range q {
		if strings.HasPrefix(name, "X-Goog-") {
			q.Del(name)
		}
	}
	in.URL.RawQuery = q.Encode()
	if sum, ok := strings.CutPrefix(r.Header.Get("X-Goog-Hash"), "crc32c="); ok {
		in.Header.Set("X-Amz-Checksum-Crc32c", sum)
	}
	if want := r.Header.Get("X-Goog-If-Generation-Match"); want != "" && want != strconv.FormatInt(g.generations[r.URL.Path], 10) {
		(&Fault{Status: http.StatusPreconditionFailed, Code: "PreconditionFailed"}).answer(w, r)
		return
	}
	rec := httptest.NewRecorder()
	s3(rec, in)
	if changes && rec.Code < 300 && !q.Has("uploads") && !q.Has("partNumber") {
		delete(g.generations, r.URL.Path)
		if r.Method != http.MethodDelete {
			g.last++
			g.generations[r.URL.Path] = g.last
		}
	}
	for name, values := range rec.Header() {
		if key, ok := strings.CutPrefix(name, "X-Amz-Meta-"); ok {
			w.Header()["X-Goog-Meta-"+key] = values
		} else if !strings.HasPrefix(name, "X-Amz-") && name != "Date" {
			w.Header()[name] = values
		}
	}
	if n := g.generations[r.URL.Path]; n != 0 {
		w.Header().Set("X-Goog-Generation", strconv.FormatInt(n, 10))
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

// allowed checks who asks, and that nothing is asked in words that the API does not know.
func (g *google) allowed(r *http.Request) (status int, code string) {
	q := r.URL.Query()
	switch {
	case q.Has("X-Goog-Signature"):
		if !g.signed(r) {
			return http.StatusForbidden, "SignatureDoesNotMatch"
		}
	case r.Header.Get("Authorization") != "Bearer "+Token:
		return http.StatusUnauthorized, "AuthenticationRequired"
	}
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Amz-") {
			return http.StatusBadRequest, "InvalidArgument"
		}
	}
	multipart := q.Has("uploads") || q.Has("uploadId")
	write := r.Method == http.MethodPut || r.Method == http.MethodPost
	switch {
	case q.Has("delete"), write && (r.Header.Get("If-Match") != "" || r.Header.Get("If-None-Match") != ""), multipart && r.Header.Get("X-Goog-If-Generation-Match") != "":
		return http.StatusBadRequest, "InvalidArgument"
	case r.Method == http.MethodPost && q.Has("uploadId"):
		body, err := io.ReadAll(r.Body)
		if err != nil || bytes.Contains(body, []byte("Checksum")) {
			return http.StatusBadRequest, "MalformedCompleteMultipartUploadRequest"
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	if bounds := r.Header.Get("X-Goog-Content-Length-Range"); bounds != "" && bounds != fmt.Sprintf("%d,%d", r.ContentLength, r.ContentLength) {
		return http.StatusBadRequest, "EntityTooLarge"
	}
	return 0, ""
}

// signed checks a V4 signature.
func (g *google) signed(r *http.Request) bool {
	var asked []string
	for _, pair := range strings.Split(r.URL.RawQuery, "&") {
		if !strings.HasPrefix(pair, "X-Goog-Signature=") {
			asked = append(asked, pair)
		}
	}
	slices.Sort(asked)
	q := r.URL.Query()
	at, err := time.Parse("20060102T150405Z", q.Get("X-Goog-Date"))
	life, err2 := strconv.Atoi(q.Get("X-Goog-Expires"))
	who, scope, _ := strings.Cut(q.Get("X-Goog-Credential"), "/")
	if err != nil || err2 != nil || who != GCSAccount || time.Since(at) > time.Duration(life)*time.Second {
		return false
	}
	names := strings.Split(q.Get("X-Goog-SignedHeaders"), ";")
	canonical := r.Method + "\n" + r.URL.EscapedPath() + "\n" + strings.Join(asked, "&") + "\n"
	for _, name := range names {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
		}
		canonical += name + ":" + value + "\n"
	}
	for name := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-goog-") && !slices.Contains(names, name) {
			return false
		}
	}
	canonical += "\n" + strings.Join(names, ";") + "\nUNSIGNED-PAYLOAD"
	sum := sha256.Sum256([]byte(canonical))
	what := sha256.Sum256([]byte(strings.Join([]string{"GOOG4-RSA-SHA256", q.Get("X-Goog-Date"), scope, hex.EncodeToString(sum[:])}, "\n")))
	signature, err := hex.DecodeString(q.Get("X-Goog-Signature"))
	return err == nil && rsa.VerifyPKCS1v15(&googleKey().PublicKey, crypto.SHA256, what[:], signature) == nil
}

// signBlob is IAM's method.
func (g *google) signBlob(w http.ResponseWriter, r *http.Request) {
	var in struct{ Payload []byte }
	if r.Header.Get("Authorization") != "Bearer "+Token || json.NewDecoder(r.Body).Decode(&in) != nil {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	sum := sha256.Sum256(in.Payload)
	signature, err := rsa.SignPKCS1v15(rand.Reader, googleKey(), crypto.SHA256, sum[:])
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string][]byte{"signedBlob": signature})
}
