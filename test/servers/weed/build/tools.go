//go:build tools

// Package tools pins SeaweedFS, which tests start: a module of its own, so that none of what it depends on comes into Signet's.
package tools

import _ "github.com/seaweedfs/seaweedfs/weed"
