package broker

// ParseRequest is for fuzzing.
func ParseRequest(reqs, upds []byte) error {
	_, err := parseRequest(reqs, upds)
	return err
}

// ParseManifestList is for fuzzing.
func ParseManifestList(raw []byte) error {
	_, err := parseManifestList(raw)
	return err
}
