// Package s3_test proves, against a real S3 server with STS and a policy engine of its own (SeaweedFS, `make servers`), what somebody who has taken over an executor can do with what
// is in its memory: write below the prefix of the attempt that runs there, and nothing else. Without the server the tests are skipped.
package s3_test
