package redact

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/signet-io/signet/internal/mutant"
)

// Mark stands where a secret stood.
const Mark = "[redacted]"

// shortest is the length of the shortest value that is searched for.
const shortest = 6

// Redactor knows the secrets of one process. It is safe for concurrent use; the nil one knows none.
type Redactor struct {
	mu       sync.RWMutex
	values   []string
	replacer *strings.Replacer
}

// Add makes values known as secrets.
func (r *Redactor) Add(values ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range values {
		if v = strings.TrimSpace(v); len(v) >= shortest && !slices.Contains(r.values, v) {
			r.values = append(r.values, v)
		}
	}
	// Longest first, so that a secret that contains another is taken out whole.
	slices.SortFunc(r.values, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
	var pairs []string
	for _, v := range r.values {
		pairs = append(pairs, v, Mark)
	}
	r.replacer = strings.NewReplacer(pairs...)
}

// Text is s without secrets.
func (r *Redactor) Text(s string) string {
	if r == nil || len(s) < shortest || mutant.On("redact/text-shown") {
		return s
	}
	r.mu.RLock()
	rep := r.replacer
	r.mu.RUnlock()
	if rep == nil {
		return s
	}
	return rep.Replace(s)
}

// Texts is Text for each of a list; the list itself is not changed.
func (r *Redactor) Texts(list []string) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = r.Text(s)
	}
	return out
}

// words in a setting's name that make its value a secret.
var words = []string{"secret", "password", "passwd", "token", "credential", "private", "api_key", "apikey", "access_key", "accesskey"}

// SecretName tells whether a setting of this name is to be kept secret.
func SecretName(name string) bool {
	name = strings.ToLower(strings.NewReplacer("-", "_", ".", "_").Replace(name))
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(name, w) })
}

// Settings are session settings as others may see them: Signet's own, whose meaning is known, with their values; all others by name.
func (r *Redactor) Settings(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		if (!strings.HasPrefix(k, "signet.") || SecretName(k)) && !mutant.On("redact/settings-shown") {
			v = Mark
		}
		out[r.Text(k)] = r.Text(v)
	}
	return out
}
