package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/weirflow/weir/bench/internal/localredis"
)

// redisCell is the module whose command CL.THROTTLE is.
const redisCell = "Redis, the module redis-cell, `CL.THROTTLE`"

// cellManifest makes cargo fetch the source of the module from crates.io, with what it needs.
const cellManifest = `[package]
name = "beside"
version = "0.0.0"
edition = "2021"

[dependencies]
redis-cell = "=0.2.2"
`

// startCell builds the module and starts a Redis with it. Without cargo it returns no address.
func startCell(ctx context.Context, folder string) (address string, stop func(), err error) {
	in := filepath.Join(folder, "cell")
	err = errors.Join(os.MkdirAll(filepath.Join(in, "src"), 0o755), os.WriteFile(filepath.Join(in, "src", "lib.rs"), nil, 0o600),
		os.WriteFile(filepath.Join(in, "Cargo.toml"), []byte(cellManifest), 0o600))
	if err != nil {
		return "", nil, err
	}
	for _, words := range [][]string{{"vendor"}, {"build", "--release", "--manifest-path", "vendor/redis-cell/Cargo.toml", "--target-dir", "built"}} {
		c := exec.CommandContext(ctx, "cargo", append(words, "--quiet")...)
		c.Dir = in
		output, err := c.CombinedOutput()
		if errors.Is(err, exec.ErrNotFound) {
			fmt.Fprintln(os.Stderr, "bench/resp: redis-cell is not measured:", err)
			return "", func() {}, nil
		}
		if err != nil {
			return "", nil, fmt.Errorf("%v: %w\n%s", c.Args, err, output)
		}
	}
	return localredis.Start("save ''", "loadmodule "+filepath.Join(in, "built", "release", "libredis_cell.so"))
}
