// Package gatewaytest starts real gateways, nginx, Caddy, HAProxy and Envoy, for tests. They are ready when the call returns, and
// end with the test.
//
// Without Envoy, the test fails with a line that says how to install it. Without another program, it is skipped with such a line,
// and fails if the environment variable CI is set.
package gatewaytest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/testprocess"
)

// patience bounds the time that a gateway may take to get ready. It is generous, for busy machines.
const patience = 30 * time.Second

// nginxFrame is the nginx.conf around a site. The paths are below the folder of the test, so that nginx needs no
// privileges.
const nginxFrame = `daemon off;
master_process off;
pid nginx.pid;
events {}
http {
	access_log off;
	client_body_temp_path body;
	proxy_temp_path proxy;
	fastcgi_temp_path fastcgi;
	uwsgi_temp_path uwsgi;
	scgi_temp_path scgi;
	include site.conf;
}
`

// Nginx starts nginx with a site, in the form of a file of /etc/nginx/conf.d. The site must listen on addr.
func Nginx(t testing.TB, addr, site string) {
	t.Helper()
	testprocess.Require(t, "nginx", "nginx-light")
	dir := t.TempDir()
	write(t, dir, "nginx.conf", nginxFrame)
	write(t, dir, "site.conf", site)
	start(t, addr, exec.Command("nginx", "-p", dir, "-c", "nginx.conf", "-e", "stderr"))
}

// RefusedByNginx returns what nginx says of a site that it must refuse.
func RefusedByNginx(t testing.TB, site string) string {
	t.Helper()
	testprocess.Require(t, "nginx", "nginx-light")
	dir := t.TempDir()
	write(t, dir, "nginx.conf", nginxFrame)
	write(t, dir, "site.conf", site)
	text, err := exec.Command("nginx", "-t", "-p", dir, "-c", "nginx.conf", "-e", "stderr").CombinedOutput()
	if err == nil {
		t.Errorf("gatewaytest: nginx takes the site, want that it refuses it")
	}
	return string(text)
}

// Caddy starts Caddy with a Caddyfile, which must listen on addr.
func Caddy(t testing.TB, addr, caddyfile string) {
	t.Helper()
	testprocess.Require(t, "caddy", "caddy")
	dir := t.TempDir()
	write(t, dir, "Caddyfile", "{\n\tadmin off\n}\nimport site\n")
	write(t, dir, "site", caddyfile)
	cmd := exec.Command("caddy", "run", "--config", "Caddyfile", "--adapter", "caddyfile")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	start(t, addr, cmd)
}

// HAProxy starts HAProxy with a configuration, which must listen on addr.
func HAProxy(t testing.TB, addr, config string) {
	t.Helper()
	testprocess.Require(t, "haproxy", "haproxy")
	dir := t.TempDir()
	write(t, dir, "haproxy.cfg", config)
	start(t, addr, exec.Command("haproxy", "-db", "-f", filepath.Join(dir, "haproxy.cfg")))
}

func write(t testing.TB, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatalf("gatewaytest: %v", err)
	}
}

// start starts a gateway and waits until it listens.
func start(t testing.TB, addr string, cmd *exec.Cmd) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatalf("gatewaytest: %v", err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	p, err := testprocess.Start(cmd)
	if err != nil {
		t.Fatalf("gatewaytest: %v", err)
	}
	t.Cleanup(func() {
		p.End()
		_ = log.Close()
		if t.Failed() {
			t.Logf("gatewaytest: the log of %s:\n%s", cmd.Path, tail(log.Name()))
		}
	})
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if conn, err := net.Dial("tcp", addr); err == nil {
			_ = conn.Close()
			if !p.Ended() { // otherwise another program listens there
				return
			}
		}
		if p.Ended() || time.Since(began) > patience {
			t.Fatalf("gatewaytest: %s does not listen on %s", cmd.Path, addr)
		}
	}
}

// tail returns the last 4 KiB of a file.
func tail(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(text[max(0, len(text)-4<<10):])
}
