package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	"github.com/signet-io/signet/catalog"
)

// Error is an answer of a server that is not what was asked for.
type Error struct {
	Status  int
	Type    string // as the protocol names it, such as NoSuchTableException; "" where the answer is none of the protocol
	Message string // the server's, shortened
	Wanted  string // by a redirect
}

func (e *Error) Error() string {
	text := fmt.Sprintf("the catalog's server answered %d %s", e.Status, http.StatusText(e.Status))
	switch {
	case e.Wanted != "":
		text += fmt.Sprintf(", to another address (%s), which is not followed: write the final address as uri", e.Wanted)
	case e.Type != "" || e.Message != "":
		text += fmt.Sprintf(": %s: %s", e.Type, e.Message)
	default:
		text += ", and not in Iceberg's protocol: something else may have answered"
	}
	return text
}

// spoken says whether the catalog itself said it, and not something in between.
func (e *Error) spoken() bool { return e.Type != "" }

const maxMessage = 400 // bytes of a server's words

func (c *Catalog) refusal(a *answer) *Error {
	e := &Error{Status: a.status}
	if a.status/100 == 3 {
		e.Wanted = hostOf(a.header.Get("Location"))
		return e
	}
	var doc struct {
		Error *struct {
			Message string `json:"message"`
			Type    string `json:"type"`
			Code    int    `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal(a.body, &doc) == nil && doc.Error != nil {
		e.Type, e.Message = c.quote(doc.Error.Type), c.quote(doc.Error.Message)
	}
	return e
}

// quote makes a server's words fit for a log and a terminal.
func (c *Catalog) quote(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, c.client.clean(text))
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return text
}

// hostOf is as much of a redirect's target as a text may hold.
func hostOf(location string) string {
	scheme, rest, ok := strings.Cut(location, "://")
	if !ok {
		return "a path of the same server"
	}
	host, _, _ := strings.Cut(rest, "/")
	host = host[strings.LastIndexByte(host, '@')+1:]
	host, _, _ = strings.Cut(host, "?")
	return fmt.Sprintf("%.80s", scheme+"://"+host)
}

// definite says how a request that only reads, or whose outcome can be seen by anybody, was answered.
func definite(e *Error) error {
	switch e.Status {
	case http.StatusNotFound:
		if e.spoken() {
			return fmt.Errorf("%w: %w", catalog.ErrNotFound, e)
		}
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusUnauthorized, http.StatusForbidden, statusTokenExpired,
		http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusNotImplemented, http.StatusRequestEntityTooLarge:
		return fmt.Errorf("%w: %w", catalog.ErrPermanent, e)
	}
	return e
}

// taken is definite, for requests that make something: 409 says that it is there.
func taken(e *Error) error {
	if e.Status == http.StatusConflict && e.spoken() {
		return fmt.Errorf("%w: %w", catalog.ErrExists, e)
	}
	return definite(e)
}
