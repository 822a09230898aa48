package flightrows

import (
	"encoding/base64"
	"strings"

	"google.golang.org/grpc/metadata"
)

// Shown is what a Flight client shows of itself: a bearer token, or a user and a password by basic authentication. Many drivers know only the latter, so
// that a password stands for a token. basic without a token is one that cannot be read.
func Shown(md metadata.MD) (user, token string, basic bool) {
	v := md.Get("authorization")
	if len(v) != 1 {
		return "", "", false
	}
	scheme, text, _ := strings.Cut(v[0], " ")
	text = strings.TrimSpace(text)
	switch strings.ToLower(scheme) {
	case "bearer":
		return "", text, false
	case "basic":
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			if b, err = base64.RawStdEncoding.DecodeString(text); err != nil {
				return "", "", true
			}
		}
		user, token, _ = strings.Cut(string(b), ":")
		return user, token, true
	}
	return "", "", false
}
