package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
)

const redacted = "[redacted]"

// Secret refers to a secret; it does not hold it. Resolve reads it when it is needed. In whatever way a Secret is printed, the
// result is [redacted]: not even the name of the file or variable is told.
type Secret struct {
	file, env string
}

// SecretFile refers to the content of a file, without its last line break.
func SecretFile(path string) Secret { return Secret{file: path} }

// SecretEnv refers to an environment variable.
func SecretEnv(name string) Secret { return Secret{env: name} }

// IsZero says that there is no reference.
func (s Secret) IsZero() bool { return s == Secret{} }

// File is the file referred to, "" if none: source rules deny it to statements.
func (s Secret) File() string { return s.file }

// Env is the variable referred to, "" if none: children are started without it.
func (s Secret) Env() string { return s.env }

// maxSecret bounds what is read as a secret: a reference to the wrong file should say so.
const maxSecret = 64 << 10

// Resolve reads the secret. An empty one is an error. The error tells the reference, never a part of the content.
func (s Secret) Resolve() (string, error) {
	switch {
	case s.file != "":
		return s.resolveFile()
	case s.env != "":
		v := os.Getenv(s.env)
		if v == "" {
			return "", fmt.Errorf("secret: the variable %s is not set", s.env)
		}
		return v, nil
	default:
		return "", errors.New("secret: no reference; write {file: PATH} or {env: NAME}")
	}
}

func (s Secret) resolveFile() (string, error) {
	fi, err := os.Stat(s.file)
	if err != nil {
		return "", fmt.Errorf("secret: %w", err)
	}
	if fi.Size() > maxSecret {
		return "", fmt.Errorf("secret: %s has %d bytes; is it the right file?", s.file, fi.Size())
	}
	b, err := os.ReadFile(s.file)
	if err != nil {
		return "", fmt.Errorf("secret: %w", err)
	}
	v := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	if v == "" {
		return "", fmt.Errorf("secret: %s is empty", s.file)
	}
	return v, nil
}

// Format is what every verb of fmt prints.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// String is [redacted].
func (s Secret) String() string { return redacted }

// GoString is [redacted].
func (s Secret) GoString() string { return redacted }

// MarshalJSON is "[redacted]".
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(redacted) }

// MarshalText is [redacted].
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalYAML is [redacted].
func (s Secret) MarshalYAML() (any, error) { return redacted, nil }

// LogValue is [redacted].
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
