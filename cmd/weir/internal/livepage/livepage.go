// Package livepage has the live page of a daemon, for operators on call. The admin port serves it at /.
//
// The page is HTML, style and script as they stand in assets, after those that all pages share (package page): no framework, nothing
// to build. main.js is where to begin. It reads the stream of GET /v1/admin/live, which package live serves, and asks the paths that
// weir ctl asks. A token that someone types stays in the memory of the page. All its URLs are relative, so it works behind a prefix
// and at the end of an ssh -L to the socket.
package livepage

import (
	"embed"
	"net/http"
	"path"

	"github.com/weirflow/weir/cmd/weir/internal/page"
)

//go:embed assets
var assets embed.FS

var mediaTypes = map[string]string{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}

// policy lets the page load its own files and ask its own daemon, and nothing else. Texts that callers choose cannot run as script:
// the browser refuses any that would become one.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; " +
	"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Handler serves the page at / and its files below /live/, without a scope: what the page shows, it asks for. The port adds the other
// headers that keep strangers out.
func Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { serve(w, "index.html") })
	mux.HandleFunc("GET /live/{name}", func(w http.ResponseWriter, r *http.Request) { serve(w, r.PathValue("name")) })
	return mux
}

func serve(w http.ResponseWriter, name string) {
	text, err := file(name)
	mediaType := mediaTypes[path.Ext(name)]
	if err != nil || mediaType == "" {
		http.Error(w, "the live page has no such file", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Content-Type", mediaType)
	_, _ = w.Write(text) // the client may have left
}

// file returns a file of the page. Those of all pages have the name page.
func file(name string) ([]byte, error) {
	switch name {
	case "page.css":
		return []byte(page.Style()), nil
	case "page.js":
		return []byte(page.Script()), nil
	}
	return assets.ReadFile(path.Join("assets", name))
}
