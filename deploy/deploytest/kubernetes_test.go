// Package deploytest decodes the files of deploy into the types of the programs that read them. It is a module of its own,
// so that no user of Weir gets their dependencies.
package deploytest

import (
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// manifests are the objects of deploy/kubernetes.
type manifests struct {
	rules      corev1.ConfigMap
	deployment appsv1.Deployment
	service    corev1.Service
	budget     policyv1.PodDisruptionBudget
	policy     networkingv1.NetworkPolicy
}

// readManifests refuses fields that Kubernetes does not know, and fields of the wrong type.
func readManifests(t *testing.T) (m manifests) {
	t.Helper()
	into := map[string]any{
		"v1 ConfigMap": &m.rules, "apps/v1 Deployment": &m.deployment, "v1 Service": &m.service,
		"policy/v1 PodDisruptionBudget": &m.budget, "networking.k8s.io/v1 NetworkPolicy": &m.policy,
	}
	text, err := os.ReadFile("../kubernetes/weir.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for object := range strings.SplitSeq(string(text), "\n---\n") {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(object), &kind); err != nil {
			t.Fatal(err)
		}
		name := kind.APIVersion + " " + kind.Kind
		if into[name] == nil {
			t.Fatalf("%q is unknown or occurs twice", name)
		}
		if err := yaml.UnmarshalStrict([]byte(object), into[name]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		delete(into, name)
	}
	if len(into) != 0 {
		t.Errorf("these are missing: %v", into)
	}
	return m
}

func TestTheManifestsAreThoseOfKubernetesAndFitTogether(t *testing.T) {
	m := readManifests(t)
	pods := m.deployment.Spec.Template
	for what, selector := range map[string]map[string]string{
		"deployment": m.deployment.Spec.Selector.MatchLabels, "service": m.service.Spec.Selector,
		"budget": m.budget.Spec.Selector.MatchLabels, "network policy": m.policy.Spec.PodSelector.MatchLabels,
	} {
		for key, value := range selector {
			if pods.Labels[key] != value {
				t.Errorf("the %s selects %s=%s, and the pods have %v", what, key, value, pods.Labels)
			}
		}
	}
	container := pods.Spec.Containers[0]
	ports := map[string]bool{}
	for _, port := range container.Ports {
		ports[port.Name] = true
	}
	for _, port := range m.service.Spec.Ports {
		if !ports[port.TargetPort.StrVal] {
			t.Errorf("the service sends to the port %q, and the container has %v", port.TargetPort.StrVal, ports)
		}
	}
	volumes := map[string]bool{}
	for _, volume := range pods.Spec.Volumes {
		volumes[volume.Name] = true
		if volume.ConfigMap != nil && volume.ConfigMap.Name != m.rules.Name {
			t.Errorf("the pods mount the rules %q, and there are %q", volume.ConfigMap.Name, m.rules.Name)
		}
	}
	for _, mount := range container.VolumeMounts {
		if !volumes[mount.Name] {
			t.Errorf("the container mounts %q, and the pods have %v", mount.Name, volumes)
		}
	}
}
