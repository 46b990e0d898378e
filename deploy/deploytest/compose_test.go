package deploytest

import (
	"os"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
)

// The loader of docker compose refuses keys that it does not know.
func TestTheComposeFileIsThatOfCompose(t *testing.T) {
	options, err := cli.NewProjectOptions([]string{"../compose/compose.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"weir", "redis", "envoy"} {
		service, err := project.GetService(name)
		if err != nil {
			t.Error(err)
		}
		for _, volume := range service.Volumes {
			if _, err := os.Stat(volume.Source); err != nil {
				t.Errorf("%s mounts %v", name, err)
			}
		}
	}
}
