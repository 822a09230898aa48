package upload

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // what the store compares bodies by
	"encoding/base64"
	"encoding/xml"
	"io"
	"net/http"
	"net/url"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
)

// Azure's uploads in parts are blocks, which are named in their requests' URLs, and a list of their names.

func query(r *executorv1.SignedRequest) url.Values {
	u, err := url.Parse(r.GetUrl())
	if err != nil {
		return nil
	}
	return u.Query()
}

// blockOf is the name of the block that a request writes; empty: it writes none.
func blockOf(r *executorv1.SignedRequest) string {
	if q := query(r); q.Get("comp") == "block" {
		return q.Get("blockid")
	}
	return ""
}

func isBlockList(r *executorv1.SignedRequest) bool { return query(r).Get("comp") == "blocklist" }

// compared are the headers by which a store of blobs compares what has arrived. Other stores have it in what is signed.
func (u *uploading) compared(r *executorv1.SignedRequest, from, size int64) (http.Header, error) {
	if blockOf(r) == "" && !sent(r, "X-Ms-Blob-Type") {
		return nil, nil
	}
	h := md5.New() //nolint:gosec // see the import
	if _, err := io.Copy(h, io.NewSectionReader(u.file, from, size)); err != nil {
		return nil, err
	}
	return http.Header{"Content-Md5": {base64.StdEncoding.EncodeToString(h.Sum(nil))}}, nil
}

// commit makes the blob of its blocks. The store says no more than that it has.
func (u *uploading) commit(ctx context.Context, r *executorv1.SignedRequest, parts []part) error {
	list := struct {
		XMLName xml.Name `xml:"BlockList"`
		Latest  []string
	}{}
	for _, p := range parts {
		list.Latest = append(list.Latest, p.ETag)
	}
	body, err := xml.Marshal(list)
	if err != nil {
		return err
	}
	resp, err := u.w.Client.Do(ctx, r, nil, bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
