package release

import (
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/testprocess"
)

// The image is made without a Docker daemon. A second one of the same commit has the same bytes.
func TestTheImageRunsWithNothingAroundIt(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the program: make long runs it")
	}
	c := copyProject(t)
	c.ready()
	c.run("scripts/tag.sh", version)
	c.run("make", "image")
	archive := only(t, filepath.Join(c.dir, "dist"), "*_image.tar")
	sum := c.run("sha256sum", archive)
	checkRuns(t, checkImage(t, archive))
	c.run("make", "image")
	if again := c.run("sha256sum", archive); again != sum {
		t.Errorf("two images of one commit have the sums %s and %s", sum, again)
	}
}

// checkRuns runs both programs of the image with its files alone, as its user.
func checkRuns(t *testing.T, layer string) {
	t.Helper()
	root := t.TempDir()
	run(t, root, nil, "tar", "--extract", "--file", layer)
	certificates, err := os.ReadFile(filepath.Join(root, "etc/ssl/certs/ca-certificates.crt"))
	if err != nil || !x509.NewCertPool().AppendCertsFromPEM(certificates) {
		t.Errorf("the certificates of authorities: %v, or none of them is one", err)
	}
	if out, err := inside(root, nil, "/bin/weir", "version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "weir "+version+" ") {
		t.Errorf("weir version in the image: %v, %s", err, out)
	}
	address := "127.0.0.1:" + strconv.Itoa(testprocess.FreePort(t))
	startInside(t, inside(root, nil, "/bin/weir", "serve", "--http", address, "--rule", "budget=quota 5/month in Europe/Paris"))
	await(t, "http://"+address+"/readyz", http.StatusOK, "")
	response, err := http.Post("http://"+address+"/v1/take", "application/json", strings.NewReader(`{"rule":"budget","key":"k"}`))
	if err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("a quota of Paris in the image: %v, %v", response, err)
	}

	port := func() string { return strconv.Itoa(testprocess.FreePort(t)) }
	asked := port()
	startInside(t, inside(root, []string{"CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_SERVER_URL=127.0.0.1:1", "FORCE_START_WITHOUT_INITIAL_CONFIG=true",
		"PORT=" + asked, "GRPC_PORT=" + port(), "DEBUG_PORT=" + port(), "USE_STATSD=false"}, "/bin/ratelimit"))
	await(t, "http://127.0.0.1:"+asked+"/healthcheck", http.StatusOK, "OK")
}

// inside returns a command that sees the folder as the whole machine, and runs as the user of the image.
func inside(root string, environment []string, program string, arguments ...string) *exec.Cmd {
	const user = 65532
	cmd := exec.Command(program, arguments...)
	cmd.Path, cmd.Dir, cmd.Err = program, "/", nil // is looked up in the folder
	cmd.Env = environment
	if environment == nil {
		cmd.Env = []string{}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: user, Gid: user}
		return cmd
	}
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Geteuid(), Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Getegid(), Size: 1}}
	return cmd
}

// startInside starts a daemon, which ends with the test.
func startInside(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.Stderr = t.Output()
	process, err := testprocess.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.End)
}

// await asks until the status is there. The text is then the whole answer, unless it is empty.
func await(t *testing.T, url string, status int, text string) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		response, err := http.Get(url)
		if err == nil {
			body, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if response.StatusCode == status && (text == "" || string(body) == text) {
				return
			}
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("%s: %v, %v, want %d %q", url, response, err, status, text)
		}
	}
}

// checkImage returns the file of the only layer. The image runs the program, as no root, and the sum of each part is its name.
func checkImage(t *testing.T, archive string) (layer string) {
	t.Helper()
	type reference struct{ Digest string }
	dir := t.TempDir()
	run(t, dir, nil, "tar", "--extract", "--file", archive)
	blob := func(digest string) string {
		return filepath.Join(dir, "blobs/sha256", strings.TrimPrefix(digest, "sha256:"))
	}
	run(t, filepath.Join(dir, "blobs/sha256"), nil, "sh", "-c", `for f in *; do echo "$f  $f"; done | sha256sum --check --strict`)

	var index struct{ Manifests []reference }
	decode(t, filepath.Join(dir, "index.json"), &index)
	decode(t, blob(index.Manifests[0].Digest), &index)
	var manifest struct {
		Config reference
		Layers []reference
	}
	decode(t, blob(index.Manifests[0].Digest), &manifest)
	var image struct {
		Architecture string
		Config       struct {
			Entrypoint []string
			User       string
		}
	}
	decode(t, blob(manifest.Config.Digest), &image)
	if image.Architecture != runtime.GOARCH || len(image.Config.Entrypoint) != 1 || image.Config.Entrypoint[0] != "/bin/weir" || image.Config.User != "65532:65532" {
		t.Errorf("the image is %+v, want /bin/weir for %s as the user 65532", image, runtime.GOARCH)
	}
	const want = "./bin/ratelimit\n./bin/weir\n./etc/ssl/certs/ca-certificates.crt\n"
	if got := run(t, dir, nil, "sh", "-c", "tar --list --file "+blob(manifest.Layers[0].Digest)+" | grep -v '/$'"); got != want {
		t.Errorf("the image has %q, want %q", got, want)
	}
	return blob(manifest.Layers[0].Digest)
}
