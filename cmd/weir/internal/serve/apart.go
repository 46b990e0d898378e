package serve

import (
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/sqlengine"
)

// apart refuses one file for two purposes, such as the state and the record, before anything is written.
func (o *options) apart(out, errs io.Writer) error {
	var full []string // of the record
	for i := range o.record.files {
		full = append(full, "."+strconv.Itoa(i+1))
	}
	state, err := linkTarget(o.state.path) // beside which the other files of the state are
	if err != nil {
		return o.state.cannot("follow", err)
	}
	uses := slices.Concat(
		cli.FileUse{Purpose: "--state", Path: state, Writes: true}.Beside(lockEnd, badEnd, overridesEnd, overridesEnd+".secret", pushedEnd),
		cli.FileUse{Purpose: "--record", Path: o.record.path, Writes: true}.Beside(full...),
		cli.FileUse{Purpose: "--engine", Path: sqlengine.File(o.engine.where), Writes: true}.Beside("-wal", "-shm", "-journal"),
		[]cli.FileUse{
			{Purpose: "--tokens", Path: o.ports.files.Tokens}, {Purpose: "--tls-cert", Path: o.ports.files.Cert},
			{Purpose: "--notify-secret", Path: o.notify.secret}, {Purpose: "--tls-key", Path: o.ports.files.Key}, {Purpose: "--tls-client-ca", Path: o.ports.files.ClientCA},
			cli.StreamUse("standard output", out, true), cli.StreamUse("standard error", errs, true),
		})
	for flag, address := range map[string]string{"--http": o.http, "--admin": o.ports.admin, "--metrics": o.ports.metrics, "--resp": o.ports.resp, "--grpc": o.ports.envoy.address} {
		if path, ok := strings.CutPrefix(address, "unix:"); ok {
			uses = append(uses, cli.FileUse{Purpose: flag, Path: path, Writes: true})
		}
	}
	for _, path := range o.rules.paths {
		uses = append(uses, cli.FileUse{Purpose: "--config", Path: path})
	}
	for _, path := range o.compat.overlay {
		uses = append(uses, cli.FileUse{Purpose: "--overlay", Path: path})
	}
	return cli.Apart("serve", uses...)
}
