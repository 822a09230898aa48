package storage

import "time"

// Size is the file's size when it was opened.
func (o *object) Size() int64 { return o.info.Size }

// ModTime is the file's time when it was opened.
func (o *object) ModTime() time.Time { return o.info.ModTime }

// ETag is the file's version when it was opened.
func (o *object) ETag() string { return o.info.ETag }
