package scheduler

func init() {
	register("rewrite_data_files", toMaintain, func(s *Server, j *job, c *procedureCall) error {
		return s.rewriteDataFiles(j, compaction{table: c.table, strategy: c.text("strategy"), order: c.text("sort_order"), where: c.text("where"), options: c.options("options")})
	}, param{"strategy", argText, false}, param{"sort_order", argText, false}, param{"options", argMap, false}, param{"where", argText, false})
	register("rewrite_manifests", toMaintain, ofSnapshots(func(s *Server, j *job, c *procedureCall) error { return s.rewriteManifests(j, c.table) }))
}
