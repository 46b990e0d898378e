package browsertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const pictures = "../../../../../docs/pictures"

const picturedRules = `
rules:
  - {name: login, match: {path: /login}, key: client, limit: 5/m, candidate: 3/m}
  - {name: search, match: {path: /search}, key: client, limit: 100/m and 1000/h}
  - {name: checkout, match: {path: /checkout}, key: client, limit: token bucket 2/s burst 10}
  - {name: api, match: {path: /api/*}, key: client, limit: token bucket 20/s burst 40}
  - {name: uploads, match: {path: /upload}, key: client, limit: 10/h, shadow: true}
  - {name: banned, match: {client: 192.0.2.0/24}, deny: true}
`

// shop asks for a minute as the customers of a shop do: few of them often.
func (d *liveDaemon) shop(during time.Duration) {
	random := rand.New(rand.NewPCG(44, 2))
	paths := []string{"/login", "/api/a", "/api/b", "/api/c", "/search", "/upload", "/checkout"}
	for began := time.Now(); time.Since(began) < during; {
		address := fmt.Sprintf("203.0.113.%d", min(int(math.Pow(random.Float64(), -1.25)), 60))
		request := client(paths[random.IntN(len(paths))], address)
		if random.IntN(50) == 0 {
			request = client("/login", "192.0.2.7")
		}
		body, _ := json.Marshal(request)
		if response, err := http.Post(d.traffic+"/v1/take", "application/json", bytes.NewReader(body)); err == nil {
			_ = response.Body.Close()
		}
		time.Sleep(time.Duration((10 + 7*math.Sin(time.Since(began).Seconds()/4)) * float64(time.Millisecond))) // so that the picture has waves
	}
}

// The pictures of the live page stand in the documentation. With -write-docs, which `make docs` gives, they are made again.
func TestThePicturesOfTheLivePage(t *testing.T) {
	names := []string{"live-now.png", "live-now-dark.png", "live-keys.png", "live-ask.png", "live-phone.png"}
	if *writeDocs {
		drawLive(t)
	}
	for _, name := range names {
		if picture, err := os.ReadFile(filepath.Join(pictures, name)); err != nil || !bytes.HasPrefix(picture, []byte("\x89PNG")) {
			t.Errorf("%s is no picture (%v); make docs writes it", name, err)
		}
	}
}

func drawLive(t *testing.T) {
	d := startLive(t, "--admin", "unix:admin") // the dialog shows it
	d.write(picturedRules)
	b := newTab(t)
	b.watch(d.page)
	d.ctl("limit", "203.0.113.2", "50/m", "--rule", "login", "--for", "24h")
	done := make(chan struct{})
	go func() { defer close(done); d.shop(100 * time.Second) }()
	time.Sleep(85 * time.Second) // for a picture of more than a moment
	take := func(name, panel, scheme string, width, height int64) {
		b.open(d.page+"?"+name, width, height, scheme)
		b.await("!document.querySelector('main').hidden")
		b.show(panel)
		if panel == "keys" {
			b.lookUp("203.0.113.1")
		}
		b.await("document.querySelector('main section:not([hidden])').innerText.includes('login')")
		if name == "live-ask" {
			b.click("#override-form > button")
		}
		b.picture(filepath.Join(pictures, name+".png"))
	}
	take("live-now", "now", "light", 1200, 960)
	take("live-now-dark", "now", "dark", 1200, 960)
	take("live-keys", "keys", "light", 1200, 900)
	take("live-ask", "keys", "light", 1200, 640)
	take("live-phone", "now", "light", 360, 740)
	<-done
}
