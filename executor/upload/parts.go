package upload

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"

	"golang.org/x/sync/errgroup"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/executor/signed"
)

// inParts uploads the file in parts, some at a time. An upload outlives the signatures of its requests: each part is signed when it is sent, and again when the
// store does not take the signature any more.
func (u *uploading) inParts(ctx context.Context) error {
	id, nonce, err := u.begin(ctx)
	if err != nil {
		return err
	}
	parts, err := u.parts(ctx, id)
	if err == nil {
		err = u.complete(ctx, id, nonce, parts)
	}
	if err != nil && !u.unsettled {
		u.abort(ctx, id)
	}
	return err
}

// begin starts the upload. One whose answer was lost holds nothing, and is swept with the attempt's prefix.
func (u *uploading) begin(ctx context.Context) (id, nonce string, err error) {
	err = u.w.Retry.Do(ctx, func(renew bool) error {
		u.refused(renew)
		reqs, err := u.sign(ctx, &executorv1.PutRequest{Begin: true})
		if err != nil {
			return err
		}
		nonce = nonceOf(reqs[0])
		var answer struct {
			UploadID string `xml:"UploadId"`
		}
		if err := u.ask(ctx, reqs[0], nil, &answer); err != nil {
			return err
		}
		if id = answer.UploadID; id == "" {
			return signed.Classify(reqs[0], http.StatusBadGateway, "", "its answer names no upload")
		}
		return nil
	})
	return id, nonce, err
}

// part is one that the store has.
type part struct {
	Number int    `xml:"PartNumber"`
	ETag   string `xml:"ETag"`
	CRC32C string `xml:"ChecksumCRC32C,omitempty"` // of a store that keeps checksums by this name
}

// partSize is how large the parts of a file are, so that there are not too many.
func partSize(size, least int64) int64 {
	return max(least, (size+partsMost-1)/partsMost)
}

func (u *uploading) parts(ctx context.Context, id string) ([]part, error) {
	length := partSize(u.size, u.w.Part)
	out := make([]part, (u.size+length-1)/length)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(partsAtTime)
	for n := range out {
		group.Go(func() error {
			from := int64(n) * length
			p, err := u.part(ctx, id, n+1, from, min(length, u.size-from))
			if err != nil {
				return fmt.Errorf("part %d of %d: %w", n+1, len(out), err)
			}
			out[n] = p
			return nil
		})
	}
	return out, group.Wait()
}

// part writes one part, as often as it must: the last one of a number counts.
func (u *uploading) part(ctx context.Context, id string, number int, from, size int64) (part, error) {
	sum, err := checksum(io.NewSectionReader(u.file, from, size))
	if err != nil {
		return part{}, err
	}
	out := part{Number: number, CRC32C: base64.StdEncoding.EncodeToString(sum)}
	var reqs []*executorv1.SignedRequest
	err = u.w.Retry.Do(ctx, func(renew bool) error {
		u.refused(renew)
		if reqs == nil || renew {
			if reqs, err = u.sign(ctx, &executorv1.PutRequest{UploadId: id, Part: int32(number), SizeBytes: size, Crc32C: sum}); err != nil { //nolint:gosec // at most partsMost
				return err
			}
		}
		resp, err := u.w.Client.Do(ctx, reqs[0], nil, io.NewSectionReader(u.file, from, size), size)
		if err != nil {
			return err
		}
		if !sent(reqs[0], "X-Amz-Checksum-Crc32c") {
			out.CRC32C = ""
		}
		if out.ETag = resp.Header.Get("ETag"); out.ETag == "" {
			err = signed.Classify(reqs[0], http.StatusBadGateway, "", "its answer has no ETag")
		}
		return errors.Join(err, resp.Body.Close())
	})
	return out, err
}

// sent tells whether a request has a header.
func sent(r *executorv1.SignedRequest, header string) bool {
	for name := range r.GetHeaders() {
		if http.CanonicalHeaderKey(name) == header {
			return true
		}
	}
	return false
}

// complete makes the object of the parts. That happens once, whatever is sent again: it uses the upload up. After an answer that was lost the object is looked at.
func (u *uploading) complete(ctx context.Context, id, nonce string, parts []part) error {
	body, err := xml.Marshal(struct {
		XMLName xml.Name `xml:"CompleteMultipartUpload"`
		Parts   []part   `xml:"Part"`
	}{Parts: parts})
	if err != nil {
		return err
	}
	var reqs []*executorv1.SignedRequest
	return u.w.Retry.Do(ctx, func(renew bool) error {
		u.refused(renew)
		if reqs == nil || renew {
			if reqs, err = u.sign(ctx, &executorv1.PutRequest{UploadId: id}, &executorv1.PutRequest{Head: true}); err != nil {
				return err
			}
		}
		if u.unsettled {
			ours, err := u.ours(ctx, reqs[1], nonce)
			if ours {
				u.unsettled = false
				return nil
			}
			if err != nil && !errors.Is(err, signed.ErrNotFound) && !errors.Is(err, signed.ErrDenied) { // who may not list is not told what is not there
				return err
			}
		}
		err := u.ask(ctx, reqs[0], body, &struct {
			XMLName xml.Name `xml:"CompleteMultipartUploadResult"`
		}{})
		switch {
		case err == nil:
			u.unsettled = false
		case signed.Unknown(err):
			u.unsettled = true
		case errors.Is(err, signed.ErrUpload) && u.unsettled: // it was used up by an earlier one, whose object was not seen: look again
			return signed.Classify(reqs[0], http.StatusServiceUnavailable, "", "the upload has ended, and its object is not there")
		}
		return err
	})
}

// abort takes an upload back.
func (u *uploading) abort(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortPatience)
	defer cancel()
	reqs, err := u.sign(ctx, &executorv1.PutRequest{UploadId: id, Abort: true})
	if err != nil {
		return
	}
	if resp, err := u.w.Client.Do(ctx, reqs[0], nil, nil, 0); err == nil {
		_ = resp.Body.Close() // nothing is read of it
	}
}

// maxAnswer bounds what is read of an answer in XML.
const maxAnswer = 1 << 20

// ask sends a request whose answer is XML. Stores begin with a 200 where they have not decided yet, so that what is inside may still be an error.
func (u *uploading) ask(ctx context.Context, r *executorv1.SignedRequest, body []byte, answer any) error {
	resp, err := u.w.Client.Do(ctx, r, nil, bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil {
		err = xml.Unmarshal(said, answer)
	}
	if err == nil {
		return nil
	}
	var failed struct {
		XMLName xml.Name `xml:"Error"`
		Code    string   `xml:"Code"`
		Message string   `xml:"Message"`
	}
	if xml.Unmarshal(said, &failed) == nil {
		return signed.Classify(r, http.StatusInternalServerError, failed.Code, failed.Message)
	}
	return &signed.Error{Method: r.GetMethod(), URI: r.GetUri(), Status: resp.StatusCode, Err: signed.ErrNetwork, Text: "its answer broke off or is no answer of a store"}
}
