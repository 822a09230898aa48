package broker

// ParseRequest is for fuzzing.
func ParseRequest(reqs, upds []byte) error {
	_, err := parseRequest(reqs, upds)
	return err
}

// ParseManifestList reads a list that a plugin wrote.
func ParseManifestList(raw []byte) error {
	if err := checkContainer(raw); err != nil {
		return err
	}
	_, err := parseManifestList(raw)
	return err
}
