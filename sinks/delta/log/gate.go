package log

import "slices"

const featureInCommitTimestamp = "inCommitTimestamp"

// writes tells whether a writer's feature is listed.
func (p Protocol) writes(feature string) bool {
	return p.MinWriterVersion >= 7 && slices.Contains(p.WriterFeatures, feature)
}
