package executor

import (
	"strings"

	"google.golang.org/grpc/status"
)

// sessionError is why there is no session, for the log: gRPC wraps the reason twice and escapes its quotes.
func sessionError(err error) string {
	if err == nil {
		return "the scheduler ended the session"
	}
	text := err.Error()
	if st, ok := status.FromError(err); ok {
		text = st.Message()
	}
	if inner, ok := strings.CutPrefix(text, `connection error: desc = "`); ok {
		text = strings.TrimSuffix(strings.TrimPrefix(inner, "transport: "), `"`)
	}
	return text
}
