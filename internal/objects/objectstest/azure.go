package objectstest

import (
	"bytes"
	"crypto/md5" //nolint:gosec // of the protocol
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/signet-io/signet/internal/objects"
)

// AzureAccount is the account of a server of Azure's kind, and AzureKey its key.
const (
	AzureAccount = "acct"
	AzureKey     = "Y2FuYXJ5LWtleS1vZi10aGUtYWNjb3VudC0wMDAwMDA="
)

// AzureBucket is what URIs call the one container.
const AzureBucket = Bucket + "@" + AzureAccount + ".dfs.core.windows.net"

// StartAzure runs a server that speaks Azure's protocol of blobs, and checks who asks: the account's key, or shared access signatures and what they permit.
func StartAzure(t testing.TB) *Server {
	t.Helper()
	s := Start(t)
	a := &azure{s: s, blobs: map[string]*blob{}, blocks: map[string]map[string][]byte{}}
	s.words = func(w http.ResponseWriter, r *http.Request, _ http.HandlerFunc) { a.serve(w, r) }
	return s
}

// AzureConnection is the connection string of the server's account.
func (s *Server) AzureConnection() string {
	return "DefaultEndpointsProtocol=http;AccountName=" + AzureAccount + ";AccountKey=" + AzureKey + ";BlobEndpoint=" + s.URL + "/" + AzureAccount
}

// AzureProps lead a client to the server.
func (s *Server) AzureProps() objects.Props {
	return objects.Props{"adls.connection-string": s.AzureConnection()}
}

type blob struct {
	body  []byte
	etag  string
	nonce string
	at    time.Time
}

type azure struct {
	s      *Server
	mu     sync.Mutex
	last   int
	blobs  map[string]*blob
	blocks map[string]map[string][]byte // of blobs that are not committed
}

func fail(w http.ResponseWriter, r *http.Request, status int, code string) {
	w.Header().Set("X-Ms-Error-Code", code)
	(&Fault{Status: status, Code: code}).answer(w, r)
}

func (a *azure) serve(w http.ResponseWriter, r *http.Request) {
	key, ok := strings.CutPrefix(r.URL.Path, "/"+AzureAccount+"/"+Bucket)
	key = strings.TrimPrefix(key, "/")
	q := r.URL.Query()
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.blobs[key]
	can := func(p string) bool { return !q.Has("sig") || strings.ContainsAny(q.Get("sp"), p) }
	switch {
	case !ok:
		fail(w, r, http.StatusNotFound, "ContainerNotFound")
	case !a.allowed(r, key):
		fail(w, r, http.StatusForbidden, "AuthenticationFailed")
	case r.Method == http.MethodGet && q.Get("comp") == "list":
		if q.Has("sig") {
			fail(w, r, http.StatusForbidden, "AuthorizationPermissionMismatch")
			return
		}
		a.list(w, q)
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		if !can("r") {
			fail(w, r, http.StatusForbidden, "AuthorizationPermissionMismatch")
			return
		}
		a.get(w, r, b)
	case r.Method == http.MethodDelete && can("d"):
		if b == nil {
			fail(w, r, http.StatusNotFound, "BlobNotFound")
			return
		}
		delete(a.blobs, key)
		w.WriteHeader(http.StatusAccepted)
	case r.Method == http.MethodPut && (can("w") || can("c") && q.Get("comp") == "" && b == nil):
		a.put(w, r, key, b)
	case r.Method == http.MethodPut && can("c"):
		fail(w, r, http.StatusForbidden, "UnauthorizedBlobOverwrite")
	default:
		fail(w, r, http.StatusForbidden, "AuthorizationPermissionMismatch")
	}
}

// allowed checks a signature of one blob; of requests that the account's key signs, only whose they are.
func (a *azure) allowed(r *http.Request, key string) bool {
	q := r.URL.Query()
	if !q.Has("sig") {
		return strings.HasPrefix(r.Header.Get("Authorization"), "SharedKey "+AzureAccount+":") || r.Header.Get("Authorization") == "Bearer "+GCSToken
	}
	until, err := time.Parse(sas.TimeFormat, q.Get("se"))
	cred, err2 := service.NewSharedKeyCredential(AzureAccount, AzureKey)
	if err != nil || err2 != nil || time.Now().After(until) {
		return false
	}
	want, err := sas.BlobSignatureValues{
		Version: q.Get("sv"), Protocol: sas.Protocol(q.Get("spr")), ExpiryTime: until, Permissions: q.Get("sp"), ContainerName: Bucket, BlobName: key,
	}.SignWithSharedKey(cred)
	return err == nil && want.Signature() == q.Get("sig")
}

func (a *azure) put(w http.ResponseWriter, r *http.Request, key string, b *blob) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	q := r.URL.Query()
	sum := md5.Sum(body) //nolint:gosec // of the protocol
	if want := r.Header.Get("Content-Md5"); want != "" && want != base64.StdEncoding.EncodeToString(sum[:]) {
		fail(w, r, http.StatusBadRequest, "Md5Mismatch")
		return
	}
	if q.Get("comp") == "block" {
		if a.blocks[key] == nil {
			a.blocks[key] = map[string][]byte{}
		}
		a.blocks[key][q.Get("blockid")] = body
		w.WriteHeader(http.StatusCreated)
		return
	}
	match := r.Header.Get("If-Match")
	switch {
	case r.Header.Get("If-None-Match") == "*" && b != nil:
		fail(w, r, http.StatusConflict, "BlobAlreadyExists")
		return
	case match != "" && (b == nil || b.etag != match):
		fail(w, r, http.StatusPreconditionFailed, "ConditionNotMet")
		return
	case q.Get("comp") == "blocklist":
		var list struct{ Latest []string }
		if xml.Unmarshal(body, &list) != nil {
			fail(w, r, http.StatusBadRequest, "InvalidXmlDocument")
			return
		}
		body = nil
		for _, id := range list.Latest {
			block, ok := a.blocks[key][id]
			if !ok {
				fail(w, r, http.StatusBadRequest, "InvalidBlockList")
				return
			}
			body = append(body, block...)
		}
	case q.Get("comp") != "" || r.Header.Get("X-Ms-Blob-Type") != "BlockBlob":
		fail(w, r, http.StatusBadRequest, "InvalidHeaderValue")
		return
	}
	a.last++
	a.blobs[key] = &blob{body: body, etag: fmt.Sprintf(`"0x8D%d"`, a.last), nonce: r.Header.Get("X-Ms-Meta-Signet_put"), at: a.s.Now()}
	delete(a.blocks, key)
	w.Header().Set("ETag", a.blobs[key].etag)
	w.Header().Set("Last-Modified", a.blobs[key].at.UTC().Format(http.TimeFormat))
	w.WriteHeader(http.StatusCreated)
}

func (a *azure) get(w http.ResponseWriter, r *http.Request, b *blob) {
	match := strings.Trim(r.Header.Get("If-Match"), `"`)
	switch {
	case b == nil:
		fail(w, r, http.StatusNotFound, "BlobNotFound")
		return
	case match != "" && match != strings.Trim(b.etag, `"`):
		fail(w, r, http.StatusPreconditionFailed, "ConditionNotMet")
		return
	}
	h := w.Header()
	h.Set("ETag", b.etag)
	h.Set("Last-Modified", b.at.UTC().Format(http.TimeFormat))
	if b.nonce != "" {
		h.Set("X-Ms-Meta-Signet_put", b.nonce)
	}
	want := r.Header.Get("X-Ms-Range")
	if want == "" {
		want = r.Header.Get("Range")
	}
	body, status := b.body, http.StatusOK
	if first, last, ok := strings.Cut(strings.TrimPrefix(want, "bytes="), "-"); ok && r.Method == http.MethodGet {
		from, _ := strconv.Atoi(first)
		to, err := strconv.Atoi(last)
		if err != nil || to >= len(body) {
			to = len(body) - 1
		}
		if from > to {
			fail(w, r, http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
			return
		}
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(body)))
		body, status = body[from:to+1], http.StatusPartialContent
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method == http.MethodGet {
		_, _ = io.Copy(w, bytes.NewReader(body))
	}
}

func (a *azure) list(w http.ResponseWriter, q url.Values) {
	type properties struct {
		Modified string `xml:"Last-Modified"`
		ETag     string `xml:"Etag"`
		Length   int    `xml:"Content-Length"`
	}
	type item struct {
		Name       string
		Properties properties
	}
	var out struct {
		XMLName xml.Name `xml:"EnumerationResults"`
		Blobs   struct {
			Blob       []item
			BlobPrefix []item
		}
		NextMarker string
	}
	a.s.mu.Lock()
	size, empty := a.s.pageSize, a.s.empty
	a.s.mu.Unlock()
	marker, seen := strings.CutPrefix(q.Get("marker"), emptyPage)
	if empty && !seen {
		out.NextMarker = emptyPage + marker
	} else {
		folded := ""
		for n, key := range slices.Sorted(maps.Keys(a.blobs)) {
			rest, ok := strings.CutPrefix(key, q.Get("prefix"))
			if !ok || key < marker || folded != "" && strings.HasPrefix(key, folded) {
				continue
			}
			if size > 0 && len(out.Blobs.Blob)+len(out.Blobs.BlobPrefix) == size {
				out.NextMarker = slices.Sorted(maps.Keys(a.blobs))[n]
				break
			}
			if d := q.Get("delimiter"); d != "" && strings.Contains(rest, d) {
				folded = q.Get("prefix") + rest[:strings.Index(rest, d)+len(d)]
				out.Blobs.BlobPrefix = append(out.Blobs.BlobPrefix, item{Name: folded})
				continue
			}
			b := a.blobs[key]
			out.Blobs.Blob = append(out.Blobs.Blob, item{key, properties{b.at.UTC().Format(http.TimeFormat), strings.Trim(b.etag, `"`), len(b.body)}})
		}
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(out)
}
