package checkup_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/objects/objectstest"
	"github.com/signet-io/signet/scheduler/config"
)

// Stores that are not S3 are tried in their own words: nothing is wrong with those that work, and nothing stays in them.
func TestCheck_Clouds(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T) (s *objectstest.Server, warehouse string, properties, secrets map[string]string){
		"gs": func(t *testing.T) (*objectstest.Server, string, map[string]string, map[string]string) {
			s := objectstest.StartGCS(t)
			return s, "gs://" + objectstest.Bucket + "/wh", map[string]string{"gcs.service.host": s.URL}, map[string]string{"gcs.jsonkey": s.GCSKey(t)}
		},
		"abfss": func(t *testing.T) (*objectstest.Server, string, map[string]string, map[string]string) {
			s := objectstest.StartAzure(t)
			return s, "abfss://" + objectstest.AzureBucket + "/wh", nil, map[string]string{"adls.connection-string": s.AzureConnection()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, warehouse, properties, secrets := start(t)
			c := onStore(t, store.URL)
			change(c, func(lake *config.Catalog) {
				lake.Warehouse, lake.Properties, lake.Secret, lake.Credentials = warehouse, properties, map[string]config.Secret{}, config.Credentials{Mode: config.CredentialsAuto}
				for name, text := range secrets {
					file := filepath.Join(t.TempDir(), "secret")
					require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
					lake.Secret[name] = config.SecretFile(file)
				}
			})
			bad, all := check(t, c)
			for _, s := range bad {
				t.Logf("%s %s: %s; %s", s.State, s.Name, s.Detail, s.Fix)
			}
			require.Empty(t, bad)
			require.Contains(t, all, "ok upload in parts by signed requests\n")

			store.Fail(objectstest.Fault{Method: http.MethodPut, Status: http.StatusForbidden, Code: "AccessDenied", Times: 99})
			bad, _ = check(t, c)
			require.Len(t, bad, 1)
			require.Equal(t, "write", bad[0].Name)
			require.Equal(t, "the scheduler has to be allowed to write below the warehouse", bad[0].Fix)
			require.NotRegexp(t, "AWS|us-east-1|s3[.:]", bad[0].Where+bad[0].Detail, "it is another store")
		})
	}
}
