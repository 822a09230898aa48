package broker

// TableLocation is where the lease's table lies, or would be created; empty: nothing has asked for it yet.
func (l *Lease) TableLocation() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != nil {
		return l.last.Location
	}
	return l.location
}

// MetadataLocation is the metadata of the lease's table that was served last; empty: none was.
func (l *Lease) MetadataLocation() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		return ""
	}
	return l.last.MetadataLocation
}
