package deploytest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/yaml"
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

// Fields that Envoy does not know, also in the extensions, are errors.
func TestTheConfigurationOfEnvoyIsThatOfEnvoy(t *testing.T) {
	text, err := os.ReadFile("../compose/envoy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		t.Fatal(err)
	}
	var bootstrap bootstrapv3.Bootstrap
	if err := protojson.Unmarshal(asJSON, &bootstrap); err != nil {
		t.Fatal(err)
	}
	if err := bootstrap.ValidateAll(); err != nil {
		t.Error(err)
	}
	compose, err := os.ReadFile(filepath.Join("..", "compose", "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	clusters := bootstrap.GetStaticResources().GetClusters()
	address := clusters[len(clusters)-1].GetLoadAssignment().GetEndpoints()[0].GetLbEndpoints()[0].GetEndpoint().GetAddress().GetSocketAddress()
	if address.GetAddress() != "weir" || !strings.Contains(string(compose), "--grpc=0.0.0.0:8081") || address.GetPortValue() != 8081 {
		t.Errorf("Envoy asks %v, want weir where it answers", address)
	}
}
