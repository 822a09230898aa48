package credentials

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ErrUnsafe: the prefix holds something that one policy engine or another would not take literally. It can still be written with presigned requests, whose keys are
// signed byte for byte.
var ErrUnsafe = errors.New("cannot be bounded by a policy")

// Object names one object of a bucket.
type Object struct{ Bucket, Key string }

// minDepth is how many segments a prefix has at least: what lies nearer to the root of a bucket is nobody's attempt.
const minDepth = 5

var (
	bucketName  = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	safeSegment = regexp.MustCompile(`^[A-Za-z0-9_.=@,+~-]+$`)
	partitions  = []string{"aws", "aws-cn", "aws-us-gov"}
)

type policyDocument struct {
	Version   string
	Statement []policyStatement
}

type policyStatement struct {
	Sid      string
	Effect   string
	Action   []string
	Resource []string
}

// Policy is the session policy of one attempt: it may write and read objects below its own prefix, parts of uploads included, and read the objects that it copies from. It
// may not list, delete, tag or change access anywhere. Names are taken from an allow-list instead of being escaped: AWS knows ${*} for a literal *, others do not,
// and a policy variable is expanded before it is matched (Polaris CVE-2026-42810). A name that is not on it is ErrUnsafe.
//
// Source: IAM User Guide, "IAM JSON policy elements: Resource" and "Session policies"; S3's "Actions, resources, and condition keys".
func Policy(partition, bucket string, prefix []string, copies []Object) (string, error) {
	if !slices.Contains(partitions, partition) {
		return "", fmt.Errorf("partition %q: %w", partition, ErrUnsafe)
	}
	if len(prefix) < minDepth {
		return "", fmt.Errorf("prefix %q has fewer than %d segments: %w", strings.Join(prefix, "/"), minDepth, ErrUnsafe)
	}
	own, err := resource(partition, bucket, prefix)
	if err != nil {
		return "", err
	}
	doc := policyDocument{Version: "2012-10-17", Statement: []policyStatement{{
		Sid: "OwnPrefix", Effect: "Allow", Action: []string{"s3:PutObject", "s3:GetObject", "s3:AbortMultipartUpload"}, Resource: []string{own + "/*"},
	}}}
	var from []string
	for _, c := range copies {
		r, err := resource(partition, c.Bucket, strings.Split(c.Key, "/"))
		if err != nil {
			return "", err
		}
		from = append(from, r)
	}
	if len(from) > 0 {
		doc.Statement = append(doc.Statement, policyStatement{Sid: "CopiedFrom", Effect: "Allow", Action: []string{"s3:GetObject"}, Resource: from})
	}
	b, err := json.Marshal(doc)
	if err != nil {
		return "", err
	}
	if len(b) > maxPolicy {
		return "", fmt.Errorf("policy has %d characters, %d are allowed: %w", len(b), maxPolicy, ErrUnsafe)
	}
	return string(b), nil
}

// maxPolicy is STS's limit of a session policy, in characters.
const maxPolicy = 2048

func resource(partition, bucket string, segments []string) (string, error) {
	if !bucketName.MatchString(bucket) || strings.Contains(bucket, "..") {
		return "", fmt.Errorf("bucket %q: %w", bucket, ErrUnsafe)
	}
	for _, s := range segments {
		if !safeSegment.MatchString(s) || s == "." || s == ".." {
			return "", fmt.Errorf("%q in the path: %w", s, ErrUnsafe)
		}
	}
	return "arn:" + partition + ":s3:::" + bucket + "/" + strings.Join(segments, "/"), nil
}
