package objectstest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Account is whose signatures a server takes that demands them, and what it may do.
type Account struct {
	Key, Secret string
	Region      string   // of the bucket; "": any
	Expired     bool     // its keys are over
	Deny        []string // actions it may not do, as IAM names them: s3:PutObject
	Role        string   // ARN that it may assume; "": none
	Loose       bool     // policies of sessions are not heeded

	policy *policy // of a session
	token  string
}

type policy struct {
	Statement []struct {
		Action, Resource []string
		Condition        struct {
			StringLike map[string][]string // s3:prefix, with a * at its end
		}
	}
}

// Demand has the server look at signatures, as AWS does, from now on: only the account's, and those of sessions of its role, which POST / makes, are taken.
func (s *Server) Demand(a Account) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accounts = map[string]*Account{a.Key: &a}
}

// account finds one by its key; demanded says that there has to be one.
func (s *Server) account(key string) (a *Account, demanded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accounts[key], s.accounts != nil
}

// shown is a signature as a request has it.
type shown struct {
	key, day, region, service string
	headers                   []string
	signature, token          string
	date                      time.Time
	life                      time.Duration // of a presigned request; 0: it is signed in a header
}

func read(r *http.Request) (v shown, ok bool) {
	q, scope, stamp := r.URL.Query(), "", r.Header.Get("X-Amz-Date")
	if q.Has("X-Amz-Signature") {
		scope, v.signature, stamp, v.token = q.Get("X-Amz-Credential"), q.Get("X-Amz-Signature"), q.Get("X-Amz-Date"), q.Get("X-Amz-Security-Token")
		v.headers = strings.Split(q.Get("X-Amz-SignedHeaders"), ";")
		n, _ := strconv.Atoi(q.Get("X-Amz-Expires"))
		v.life = time.Duration(n) * time.Second
	} else {
		v.token = r.Header.Get("X-Amz-Security-Token")
		for field := range strings.SplitSeq(strings.TrimPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 "), ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
			switch name {
			case "Credential":
				scope = value
			case "SignedHeaders":
				v.headers = strings.Split(value, ";")
			case "Signature":
				v.signature = value
			}
		}
	}
	parts := strings.Split(scope, "/")
	at, err := time.Parse("20060102T150405Z", stamp)
	if len(parts) != 5 || err != nil {
		return v, false
	}
	v.key, v.day, v.region, v.service, v.date = parts[0], parts[1], parts[2], parts[3], at
	return v, true
}

// holds says whether the signature is that of the request, by the secret. Source: AWS Signature Version 4, "Create a signed AWS API request".
func (v *shown) holds(r *http.Request, secret string, body []byte) bool {
	q := r.URL.Query()
	q.Del("X-Amz-Signature")
	path, _, _ := strings.Cut(r.RequestURI, "?")
	var head strings.Builder
	for _, name := range v.headers {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = strconv.FormatInt(r.ContentLength, 10)
		}
		head.WriteString(name + ":" + strings.TrimSpace(value) + "\n")
	}
	payload := r.Header.Get("X-Amz-Content-Sha256")
	switch {
	case v.life > 0:
		payload = "UNSIGNED-PAYLOAD"
	case payload == "":
		payload = digest(body)
	}
	request := strings.Join([]string{r.Method, path, strings.ReplaceAll(q.Encode(), "+", "%20"), head.String(), strings.Join(v.headers, ";"), payload}, "\n")
	scope := strings.Join([]string{v.day, v.region, v.service, "aws4_request"}, "/")
	key := []byte("AWS4" + secret)
	for _, part := range []string{v.day, v.region, v.service, "aws4_request", strings.Join([]string{"AWS4-HMAC-SHA256", v.date.Format("20060102T150405Z"), scope, digest([]byte(request))}, "\n")} {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(part))
		key = h.Sum(nil)
	}
	return hmac.Equal([]byte(hex.EncodeToString(key)), []byte(v.signature))
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// refuses says what is wrong with who sends a request; nil: nothing.
func (s *Server) refuses(r *http.Request) (*Account, *Fault) {
	v, ok := read(r)
	a, demanded := s.account(v.key)
	if !demanded {
		return nil, nil
	}
	deny := func(status int, code string) (*Account, *Fault) {
		return nil, &Fault{Status: status, Code: code, sts: v.service == "sts"}
	}
	var body []byte
	if v.service == "sts" {
		body, _ = io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	now := s.Now()
	switch {
	case !ok:
		return deny(http.StatusForbidden, "AccessDenied") // anonymous
	case a == nil:
		return deny(http.StatusForbidden, "InvalidAccessKeyId")
	case a.Expired:
		return deny(http.StatusBadRequest, "ExpiredToken")
	case v.token != a.token:
		return deny(http.StatusBadRequest, "InvalidToken")
	case a.Region != "" && v.service == "s3" && v.region != a.Region:
		return nil, &Fault{Status: http.StatusBadRequest, Code: "AuthorizationHeaderMalformed", Region: a.Region}
	case v.life == 0 && now.Sub(v.date).Abs() > 15*time.Minute:
		return deny(http.StatusForbidden, "RequestTimeTooSkewed")
	case v.life > 0 && (now.After(v.date.Add(v.life)) || v.date.Sub(now) > 15*time.Minute):
		return deny(http.StatusForbidden, "AccessDenied")
	case !v.holds(r, a.Secret, body):
		return deny(http.StatusForbidden, "SignatureDoesNotMatch")
	case v.service == "s3" && !a.may(action(r), r.URL.Path, r.URL.Query().Get("prefix")):
		return deny(http.StatusForbidden, "AccessDenied")
	}
	return a, nil
}

// action is what a request needs the permission of.
func action(r *http.Request) string {
	q := r.URL.Query()
	object := strings.Contains(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.Method == http.MethodPost && q.Has("delete"), r.Method == http.MethodDelete && !q.Has("uploadId"):
		return "s3:DeleteObject"
	case r.Method == http.MethodDelete:
		return "s3:AbortMultipartUpload"
	case r.Method == http.MethodPut, r.Method == http.MethodPost:
		return "s3:PutObject"
	case !object && q.Has("uploads"):
		return "s3:ListBucketMultipartUploads"
	case !object:
		return "s3:ListBucket"
	}
	return "s3:GetObject"
}

// may: prefix is that of a list.
func (a *Account) may(action, path, prefix string) bool {
	if slices.Contains(a.Deny, action) {
		return false
	}
	if a.policy == nil {
		return true
	}
	for _, st := range a.policy.Statement {
		for _, resource := range st.Resource {
			listed := st.Condition.StringLike["s3:prefix"]
			within := listed == nil || slices.ContainsFunc(listed, func(like string) bool { return strings.HasPrefix(prefix, strings.TrimSuffix(like, "*")) })
			if within && slices.Contains(st.Action, action) && strings.HasPrefix("arn:aws:s3:::"+strings.TrimPrefix(path, "/"), strings.TrimSuffix(resource, "*")) {
				return true
			}
		}
	}
	return false
}

// assume makes a session of the account's role.
func (s *Server) assume(w http.ResponseWriter, r *http.Request, by *Account) {
	_ = r.ParseForm()
	if by.Role == "" || r.PostForm.Get("RoleArn") != by.Role {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>may not assume the role</Message></Error></ErrorResponse>`)
		return
	}
	p := &policy{}
	if err := json.Unmarshal([]byte(r.PostForm.Get("Policy")), p); err != nil {
		p = nil
	}
	if by.Loose {
		p = nil
	}
	s.mu.Lock()
	id := fmt.Sprintf("SESSION%d", len(s.accounts))
	s.accounts[id] = &Account{Key: id, Secret: "secret-of-" + id, token: "token of " + id, Region: by.Region, policy: p}
	s.mu.Unlock()
	fmt.Fprintf(w, `<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>%s</AccessKeyId><SecretAccessKey>secret-of-%s</SecretAccessKey><SessionToken>token of %s</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`,
		id, id, id, s.Now().Add(time.Hour).UTC().Format(time.RFC3339))
}

// Remove removes an object, whoever may.
func (s *Server) Remove(key string) {
	s.store.ServeHTTP(httptest.NewRecorder(), &http.Request{Method: http.MethodDelete, URL: &url.URL{Path: "/" + Bucket + "/" + key}, Header: http.Header{}, Body: http.NoBody})
}

// Keys lists the objects of Bucket and its uploads in parts that are not complete, whoever may see them.
func (s *Server) Keys() []string {
	var out []string
	for _, q := range []string{"list-type=2", "uploads"} {
		rec := httptest.NewRecorder()
		s.store.ServeHTTP(rec, &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/" + Bucket, RawQuery: q}, Header: http.Header{}, Body: http.NoBody})
		rest := rec.Body.String()
		for {
			_, after, found := strings.Cut(rest, "<Key>")
			if !found {
				break
			}
			var key string
			key, rest, _ = strings.Cut(after, "</Key>")
			out = append(out, key)
		}
	}
	return out
}
