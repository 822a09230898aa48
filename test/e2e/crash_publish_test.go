package e2e_test

import "testing"

// Wherever somebody dies, what was staged is published once.
func TestCrash_PublishScheduler(t *testing.T) {
	at := append([]crash{{point: "scheduler.plan.before-journal", do: "insert"}}, atCommit(schedulerCrashes)...)
	runCrashes(t, scheduler, as("publish", at))
}

var publishCrashes = []crash{
	{point: "scheduler.root.before-commit", do: "publish partitions"},
	{point: "scheduler.seal.after-journal", do: "publish partitions"},
	{point: "broker.commit.after-send", do: "publish partitions"},
	{point: "scheduler.seal.after-journal", again: "broker.resolve.before-send", do: "publish"},
	{point: "broker.commit.after-send", again: "broker.look.before", do: "publish"},
	{point: "scheduler.root.before-commit", again: "broker.sweep.before", do: "publish"},
	{point: "plugins.altertable.after", do: "publish"},
	{point: "broker.alter.before", do: "publish at once"},
	{point: "broker.alter.after", do: "publish at once"},
	{point: "plugins.altertable.after", do: "publish at once"},
}

func TestCrash_PublishRecovery(t *testing.T) { runCrashes(t, scheduler, publishCrashes) }

func TestCrash_PublishPlugin(t *testing.T) {
	runCrashes(t, plugin, []crash{
		{point: "iceberg.alter.before-load", do: "publish"},
		{point: "iceberg.stage.before-put", do: "publish"},
		{point: "iceberg.stage.after-put", do: "publish"},
		{point: "iceberg.commit.before-list", do: "publish"},
		{point: "iceberg.commit.after-list", do: "publish"},
		{point: "iceberg.commit.before-send", do: "publish"},
		{point: "iceberg.commit.after-send", do: "publish", after: true},
		{point: "sdk.commit.before-reply", do: "publish", after: true},
		{point: "iceberg.commit.after-list", do: "publish partitions"},
		{point: "iceberg.alter.after-send", do: "publish at once"},
	})
}
