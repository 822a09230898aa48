package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	yamlv3 "go.yaml.in/yaml/v3"
)

// TestSecret_PrintsRedacted goes through every way in which a configuration might end up in a log. Even the reference is hidden.
func TestSecret_PrintsRedacted(t *testing.T) {
	c := Embedded(t.TempDir())
	c.Auth.JoinToken = SecretEnv("CANARY_VAR")
	c.Auth.Tokens = []Token{{Principal: "p", Token: SecretFile("/canary")}}
	c.Catalogs["pg"] = Catalog{Secret: map[string]Secret{"password": SecretEnv("CANARY_VAR")}}
	secret := SecretEnv("CANARY_VAR")

	var out strings.Builder
	for _, v := range []any{secret, &secret, c, *c, c.Auth, []Secret{secret}, map[string]Secret{"k": secret}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T|%v"} {
			args := []any{v}
			if verb == "%T|%v" {
				args = append(args, v)
			}
			fmt.Fprintf(&out, verb+"\n", args...)
		}
		j, err := json.Marshal(v)
		require.NoError(t, err)
		out.Write(j)
		y, err := yamlv3.Marshal(v)
		require.NoError(t, err)
		out.Write(y)
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v)
		out.Write(log.Bytes())
	}
	fmt.Fprint(&out, secret.String(), secret.GoString(), fmt.Errorf("%w %v", os.ErrNotExist, secret))
	assert.NotContains(t, strings.ToLower(out.String()), "canary")
	assert.Contains(t, out.String(), redacted)
}

func TestSecret_Resolve(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) Secret {
		p := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(p, []byte(content), 0o600))
		return SecretFile(p)
	}
	t.Setenv("CANARY_VAR", "hunter2")
	for _, s := range []Secret{file("a", "hunter2\n"), file("b", "hunter2\r\n"), file("c", "hunter2"), SecretEnv("CANARY_VAR")} {
		v, err := s.Resolve()
		require.NoError(t, err)
		assert.Equal(t, "hunter2", v)
	}
	v, err := file("d", " two\nlines \n\n").Resolve()
	require.NoError(t, err)
	assert.Equal(t, " two\nlines \n", v, "only the last line break goes")

	for want, s := range map[string]Secret{
		"NO_SUCH_VAR": SecretEnv("NO_SUCH_VAR"), "/none": SecretFile(dir + "/none"), "is empty": file("e", "\n"),
		"{file: PATH}": {}, "right file": file("f", strings.Repeat("x", maxSecret+1)),
	} {
		_, err := s.Resolve()
		require.ErrorContains(t, err, want)
	}

	c := Embedded(dir)
	require.NoError(t, c.CheckSecrets())
	c.Catalogs["pg"] = Catalog{Secret: map[string]Secret{"password": SecretEnv("NO_SUCH_VAR")}}
	require.ErrorContains(t, c.CheckSecrets(), "catalogs.pg.secret.password: secret: the variable NO_SUCH_VAR")
}
