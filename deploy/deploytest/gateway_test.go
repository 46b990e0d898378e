package deploytest

import (
	"os"
	"regexp"
	"strings"
	"testing"

	gateway "github.com/envoyproxy/gateway/api/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// documented decodes a block of the page of Envoy Gateway, by the tag at its fence. Fields that the type does not have are errors.
func documented(t *testing.T, tag string, into any) {
	t.Helper()
	page, err := os.ReadFile("../../docs/howto/envoy-gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?ms)^```yaml " + regexp.QuoteMeta(tag) + "\n(.*?)^```$").FindSubmatch(page)
	if found == nil {
		t.Fatalf("the page has no block %s", tag)
	}
	if err := yaml.UnmarshalStrict(found[1], into); err != nil {
		t.Errorf("%s: %v", tag, err)
	}
}

// The blocks of the page have the types of Envoy Gateway, and fit together.
func TestThePageOfEnvoyGatewayHasItsTypes(t *testing.T) {
	var values struct {
		Config struct {
			EnvoyGateway gateway.EnvoyGatewaySpec `json:"envoyGateway"`
		} `json:"config"`
	}
	documented(t, "kubernetes/envoy-gateway", &values)
	spec := values.Config.EnvoyGateway
	deployment := spec.Provider.Kubernetes.RateLimitDeployment
	if spec.RateLimit.Backend.Type != gateway.RedisBackendType || spec.RateLimit.Backend.Redis == nil || !strings.Contains(*deployment.Container.Image, "/weir:") {
		t.Errorf("the values have the rate limit %+v and the image %v, want Redis and Weir", spec.RateLimit, deployment.Container.Image)
	}
	overlay := ""
	for _, variable := range deployment.Container.Env {
		if variable.Name == "WEIR_OVERLAY" {
			overlay = variable.Value
		}
	}
	mount := deployment.Container.VolumeMounts[0]
	if overlay == "" || !strings.HasPrefix(overlay, mount.MountPath+"/") || deployment.Pod.Volumes[0].Name != mount.Name || deployment.Pod.Volumes[0].ConfigMap == nil {
		t.Errorf("WEIR_OVERLAY is %q, and %+v mounts %+v", overlay, mount, deployment.Pod.Volumes)
	}

	var rules corev1.ConfigMap
	documented(t, "kubernetes/overlay", &rules)
	if rules.Name != deployment.Pod.Volumes[0].ConfigMap.Name || rules.Data[strings.TrimPrefix(overlay, mount.MountPath+"/")] == "" {
		t.Errorf("the overlay %s is not in the ConfigMap %s", overlay, rules.Name)
	}

	var policy gateway.BackendTrafficPolicy
	documented(t, "kubernetes/budget", &policy)
	limits := policy.Spec.RateLimit.Global.Rules
	if len(limits) != 1 || limits[0].Limit.Unit != gateway.RateLimitUnitMonth {
		t.Errorf("the policy has the limits %+v, want one a month", limits)
	}
}
