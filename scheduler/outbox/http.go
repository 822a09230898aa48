package outbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// HTTP posts each message as JSON. Redirections are not followed: they would take the headers, which may be secret, elsewhere.
type HTTP struct {
	url     string
	headers func() (map[string]string, error)
	client  *http.Client
	log     *slog.Logger
}

// NewHTTP posts to an address, in which {name} stands for a value of Message.Path. headers are read for every batch: secrets may change.
func NewHTTP(address string, timeout time.Duration, headers func() (map[string]string, error), log *slog.Logger) *HTTP {
	return &HTTP{url: address, headers: headers, log: log, client: &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Send implements Target.
func (h *HTTP) Send(ctx context.Context, list []Message) (int, error) {
	headers, err := h.headers()
	if err != nil {
		return 0, err
	}
	for i, m := range list {
		if err := h.post(ctx, m, headers); err != nil {
			return i, err
		}
	}
	return len(list), nil
}

// post returns nil also for a message that the receiver refuses for good: to send it again would hold up all others.
func (h *HTTP) post(ctx context.Context, m Message, headers map[string]string) error {
	address := expand(h.url, m.Path)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(m.Body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	res, err := h.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	said, err := io.ReadAll(io.LimitReader(res.Body, 1<<10))
	switch code := res.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code >= 400 && code < 500 && !again(code):
		h.log.Warn("a message was refused, and is not sent again", "to", address, "status", res.Status, "answer", string(said))
		return nil
	default:
		return errors.Join(fmt.Errorf("%s: %s", address, res.Status), err)
	}
}

// again tells whether a message may be taken later: credentials are set right, limits end.
func again(code int) bool {
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusProxyAuthRequired, http.StatusRequestTimeout,
		http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return false
}

func expand(address string, path map[string]string) string {
	for k, v := range path {
		address = strings.ReplaceAll(address, "{"+k+"}", url.PathEscape(v))
	}
	return address
}

// Close implements Target.
func (h *HTTP) Close() error {
	h.client.CloseIdleConnections()
	return nil
}
