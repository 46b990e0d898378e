package auth

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
)

// Files are the paths of the credentials of callers and of the daemon. An empty path is not used.
type Files struct {
	Tokens   string // lines of identities
	Cert     string // the certificates of the daemon, PEM
	Key      string // the key of the first of them
	ClientCA string // the certificates that sign those of callers
}

// Keys tell callers apart by files, which may change. They are safe for concurrent use.
type Keys struct {
	files  Files
	secret Secret // of key tokens; nil without any
	now    atomic.Pointer[content]

	mu      sync.Mutex // one reload at a time
	seen    [sha256.Size]byte
	failing atomic.Bool // the last reload failed
}

// content is the content of the files. It does not change.
type content struct {
	identities *identities       // nil without Tokens
	own        []tls.Certificate // empty without Cert
	clients    *x509.CertPool    // nil without ClientCA

	ownEnd, clientsEnd time.Time // of the first certificate that ends; zero without one
}

// Open reads the files.
func Open(files Files) (*Keys, error) {
	k := &Keys{files: files}
	_, err := k.Reload()
	return k, err
}

// Required reports whether callers have to show who they are.
func (k *Keys) Required() bool { return k.files.Tokens != "" || k.files.ClientCA != "" }

// TLS returns the settings of a port, or nil without a certificate. Each handshake uses the files that were read last.
func (k *Keys) TLS(protocols ...string) *tls.Config {
	if k.files.Cert == "" {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := k.now.Load()
		c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: now.own, NextProtos: protocols}
		if now.clients != nil {
			c.ClientCAs, c.ClientAuth = now.clients, tls.VerifyClientCertIfGiven
			c.SessionTicketsDisabled = true // a resumed session would skip the check against changed files
			if now.identities == nil {
				c.ClientAuth = tls.RequireAndVerifyClientCert
			}
		}
		return c, nil
	}}
}

// identify returns who shows a token or has a certificate, or nil.
func (k *Keys) identify(token string, state *tls.ConnectionState) *Identity {
	now, leaf := k.now.Load(), verified(state)
	switch {
	case now.identities == nil && leaf != nil:
		return Anyone(leaf.Subject.CommonName, Local)
	case now.identities == nil:
		return nil
	}
	if token != "" {
		if who := now.identities.withToken(token); who != nil {
			return who
		}
	}
	if leaf != nil {
		return now.identities.withCertificate(leaf)
	}
	return nil
}

// Reload reads the files again. It returns false if they are as they were. After an error, what was read before stays in
// use.
func (k *Keys) Reload() (changed bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	read, sum, err := k.read()
	if sum == k.seen {
		return false, nil
	}
	k.seen = sum
	var now *content
	if err == nil {
		now, err = parse(k.files, read)
	}
	k.failing.Store(err != nil)
	if err != nil {
		return true, err
	}
	k.now.Store(now)
	return true, nil
}

// Failing reports whether the files have a problem, so that what was read before is in use.
func (k *Keys) Failing() bool { return k.failing.Load() }

// Ends returns when the first certificate of each file in use ends, by the flag that names the file.
func (k *Keys) Ends() map[string]time.Time {
	now, ends := k.now.Load(), map[string]time.Time{}
	for flag, end := range map[string]time.Time{"tls-cert": now.ownEnd, "tls-client-ca": now.clientsEnd} {
		if !end.IsZero() {
			ends[flag] = end
		}
	}
	return ends
}

// maxFile bounds the size of a file.
const maxFile = 4 << 20

// read reads all files. The sum tells their contents, or the error, from others.
func (k *Keys) read() (read map[string][]byte, sum [sha256.Size]byte, err error) {
	read = map[string][]byte{}
	h := sha256.New()
	for _, path := range []string{k.files.Tokens, k.files.Cert, k.files.Key, k.files.ClientCA} {
		if path == "" {
			continue
		}
		read[path], err = cli.ReadFile(path, maxFile)
		if err != nil {
			return nil, sha256.Sum256([]byte(err.Error())), err
		}
		fmt.Fprintf(h, "%q %d ", path, len(read[path]))
		h.Write(read[path])
	}
	return read, [sha256.Size]byte(h.Sum(nil)), nil
}

// parse makes the content of files that were read. Its errors name the file and quote nothing of it.
func parse(files Files, read map[string][]byte) (now *content, err error) {
	now = &content{}
	if files.Tokens != "" {
		if now.identities, err = parseIdentities(string(read[files.Tokens])); err != nil {
			return nil, fmt.Errorf("%s: %w", files.Tokens, err)
		}
	}
	if files.Cert != "" {
		pair, err := tls.X509KeyPair(read[files.Cert], read[files.Key])
		if err != nil {
			return nil, fmt.Errorf("%s with %s: %w", files.Cert, files.Key, err)
		}
		now.own, now.ownEnd = []tls.Certificate{pair}, firstEnd(read[files.Cert])
	}
	if files.ClientCA != "" {
		now.clients = x509.NewCertPool()
		if !now.clients.AppendCertsFromPEM(read[files.ClientCA]) {
			return nil, fmt.Errorf("%s: %w", files.ClientCA, errors.New("it has no certificate in PEM"))
		}
		now.clientsEnd = firstEnd(read[files.ClientCA])
	}
	return now, nil
}

// firstEnd returns when the first certificate of a file in PEM ends.
func firstEnd(text []byte) (first time.Time) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err == nil && (first.IsZero() || c.NotAfter.Before(first)) {
			first = c.NotAfter
		}
	}
	return first
}

// pollGap is the time between two looks at the files. Files are read when they are the same at two looks, because many
// programs write a file in several steps.
const pollGap = 500 * time.Millisecond

// Watch reads the files again when they change, and on each signal of again, until the context ends. It reports each
// reload. It compares contents, so it notices every way to replace a file.
func (k *Keys) Watch(ctx context.Context, again <-chan os.Signal, report func(error)) {
	tick := time.NewTicker(pollGap)
	defer tick.Stop()
	for last := k.seen; ; {
		select {
		case <-ctx.Done():
			return
		case <-again:
			_, err := k.Reload()
			report(err)
		case <-tick.C:
			_, sum, _ := k.read()
			if sum == last {
				if changed, err := k.Reload(); changed {
					report(err)
				}
			}
			last = sum
		}
	}
}
