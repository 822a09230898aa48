package objects

import (
	"encoding/base64"
	"net/http"
)

// FilePut is one request about a file that a task's attempt writes: who holds credentials makes a Signing of it.
type FilePut struct {
	Name     string // of the file: one segment
	Size     int64  // bytes, of the file or of the part
	CRC32C   []byte // 4 bytes, big endian, of the same
	UploadID string // of an upload in parts; with Part 0: complete it
	Part     int    // from 1 on
	Begin    bool   // begin an upload in parts
	Abort    bool   // abort it
	Head     bool   // look at the file
	Copy     *Range // with Part: what the store makes the part of, instead of a body
}

// Range is some bytes of an object that a URI names.
type Range struct {
	URI       string
	Off, Size int64
}

// Writes tells whether the request has a body of data.
func (p *FilePut) Writes() bool {
	return p.Part != 0 && p.Copy == nil || p.Part == 0 && !p.Begin && !p.Abort && !p.Head && p.UploadID == ""
}

// Signing is the request to sign, for an object that is marked with the nonce. Its Key and For are left out.
func (p *FilePut) Signing(nonce string) Signing {
	mark := http.Header{}
	mark.Set(NonceHeader, nonce)
	checksum := base64.StdEncoding.EncodeToString(p.CRC32C)
	switch {
	case p.Head:
		return Signing{Method: http.MethodHead}
	case p.Begin:
		mark.Set("X-Amz-Checksum-Algorithm", "CRC32C")
		return Signing{Method: http.MethodPost, Begin: true, Header: mark}
	case p.Abort:
		return Signing{Method: http.MethodDelete, UploadID: p.UploadID}
	case p.Copy != nil: // from where is for who knows the store
		return Signing{Method: http.MethodPut, UploadID: p.UploadID, Part: p.Part}
	case p.Part != 0:
		return Signing{Method: http.MethodPut, UploadID: p.UploadID, Part: p.Part, Size: p.Size, Header: http.Header{"X-Amz-Checksum-Crc32c": {checksum}}}
	case p.UploadID != "": // whose end uses the upload up: it cannot be sent twice
		return Signing{Method: http.MethodPost, UploadID: p.UploadID}
	}
	mark.Set("X-Amz-Checksum-Crc32c", checksum)
	mark.Set("If-None-Match", "*")
	return Signing{Method: http.MethodPut, Size: p.Size, Header: mark}
}
