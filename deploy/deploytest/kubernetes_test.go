// Package deploytest decodes the files of deploy into the types of the programs that read them, and renders the chart with Helm's
// own packages. It is a module of its own, so that no user of Weir gets their dependencies.
package deploytest

import (
	"os"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// manifests are the objects of a rendering.
type manifests struct {
	rules      *corev1.ConfigMap
	deployment *appsv1.Deployment
	services   []*corev1.Service
	budget     *policyv1.PodDisruptionBudget
	policy     *networkingv1.NetworkPolicy
	monitor    *monitoringv1.ServiceMonitor
	alerts     *monitoringv1.PrometheusRule
}

// into returns where an object of a kind goes, or nil.
func (m *manifests) into(kind metav1.TypeMeta) any {
	switch kind.APIVersion + " " + kind.Kind {
	case "v1 ConfigMap":
		return fresh(&m.rules)
	case "apps/v1 Deployment":
		return fresh(&m.deployment)
	case "v1 Service":
		m.services = append(m.services, &corev1.Service{})
		return m.services[len(m.services)-1]
	case "policy/v1 PodDisruptionBudget":
		return fresh(&m.budget)
	case "networking.k8s.io/v1 NetworkPolicy":
		return fresh(&m.policy)
	case "monitoring.coreos.com/v1 ServiceMonitor":
		return fresh(&m.monitor)
	case "monitoring.coreos.com/v1 PrometheusRule":
		return fresh(&m.alerts)
	}
	return nil
}

// fresh returns a new object, unless there is one.
func fresh[T any](at **T) any {
	if *at != nil {
		return nil
	}
	*at = new(T)
	return *at
}

// readManifests refuses fields that Kubernetes does not know, and fields of the wrong type.
func readManifests(t *testing.T, file string) (m manifests) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for object := range strings.SplitSeq(string(text), "\n---\n") {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(object), &kind); err != nil {
			t.Fatal(err)
		}
		into := m.into(kind)
		if into == nil {
			t.Fatalf("%s: %s %s is unknown or occurs twice", file, kind.APIVersion, kind.Kind)
		}
		if err := yaml.UnmarshalStrict([]byte(object), into); err != nil {
			t.Errorf("%s: %s %s: %v", file, kind.APIVersion, kind.Kind, err)
		}
	}
	if m.rules == nil || m.deployment == nil || len(m.services) != 2 {
		t.Fatalf("%s lacks rules, a deployment or a service", file)
	}
	return m
}

func TestTheManifestsAreThoseOfKubernetesAndFitTogether(t *testing.T) {
	for _, file := range renderings {
		m := readManifests(t, file)
		m.checkSelectors(t, file)
		m.checkPorts(t, file)
		m.checkVolumes(t, file)
	}
	plain := readManifests(t, manifestsFile)
	if plain.budget == nil || plain.policy == nil || plain.monitor != nil || plain.alerts != nil {
		t.Error("the manifests for kubectl have no budget, no network policy, or need the Prometheus operator")
	}
	production := readManifests(t, "testdata/production.rendered.yaml")
	if production.monitor == nil || production.alerts == nil || len(production.alerts.Spec.Groups) != 1 || len(production.alerts.Spec.Groups[0].Rules) < 10 {
		t.Error("the values of production render no ServiceMonitor, or not the alerts")
	}
}

// Every selector finds the pods.
func (m *manifests) checkSelectors(t *testing.T, file string) {
	t.Helper()
	selectors := map[string]map[string]string{"deployment": m.deployment.Spec.Selector.MatchLabels}
	for _, service := range m.services {
		selectors["service "+service.Name] = service.Spec.Selector
	}
	if m.budget != nil {
		selectors["budget"] = m.budget.Spec.Selector.MatchLabels
	}
	if m.policy != nil {
		selectors["network policy"] = m.policy.Spec.PodSelector.MatchLabels
	}
	labels := m.deployment.Spec.Template.Labels
	for what, selector := range selectors {
		for key, value := range selector {
			if labels[key] != value {
				t.Errorf("%s: the %s selects %s=%s, and the pods have %v", file, what, key, value, labels)
			}
		}
		if len(selector) == 0 {
			t.Errorf("%s: the %s selects every pod", file, what)
		}
	}
	if m.monitor == nil {
		return
	}
	found := 0
	for _, service := range m.services {
		matches := true
		for key, value := range m.monitor.Spec.Selector.MatchLabels {
			matches = matches && service.Labels[key] == value
		}
		if matches && slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == m.monitor.Spec.Endpoints[0].Port }) {
			found++
		}
	}
	if found != 1 {
		t.Errorf("%s: the monitor finds its port at %d services, want one, or each pod would be scraped twice", file, found)
	}
}

// Every port that an object names is one of the container.
func (m *manifests) checkPorts(t *testing.T, file string) {
	t.Helper()
	container := m.deployment.Spec.Template.Spec.Containers[0]
	ports := map[string]bool{}
	for _, port := range container.Ports {
		ports[port.Name] = true
	}
	named := []string{container.LivenessProbe.HTTPGet.Port.StrVal, container.ReadinessProbe.HTTPGet.Port.StrVal}
	headless := false
	for _, service := range m.services {
		headless = headless || service.Spec.ClusterIP == corev1.ClusterIPNone
		for _, port := range service.Spec.Ports {
			named = append(named, port.TargetPort.StrVal)
		}
	}
	if !headless {
		t.Errorf("%s: no service is headless, so Envoy sees one address", file)
	}
	if m.policy != nil {
		for _, rule := range m.policy.Spec.Ingress {
			for _, port := range rule.Ports {
				named = append(named, port.Port.StrVal)
			}
		}
	}
	for _, name := range named {
		if !ports[name] {
			t.Errorf("%s: the port %q is named, and the container has %v", file, name, ports)
		}
	}
}

// Every mount has a volume, and every file of an argument a mount.
func (m *manifests) checkVolumes(t *testing.T, file string) {
	t.Helper()
	pods := m.deployment.Spec.Template.Spec
	container, volumes := pods.Containers[0], map[string]bool{}
	for _, volume := range pods.Volumes {
		volumes[volume.Name] = true
		if volume.ConfigMap != nil && volume.ConfigMap.Name != m.rules.Name {
			t.Errorf("%s: the pods mount the rules %q, and there are %q", file, volume.ConfigMap.Name, m.rules.Name)
		}
	}
	for _, mount := range container.VolumeMounts {
		if !volumes[mount.Name] {
			t.Errorf("%s: the container mounts %q, and the pods have %v", file, mount.Name, volumes)
		}
	}
	for _, argument := range container.Args {
		_, value, _ := strings.Cut(argument, "=")
		name := strings.TrimPrefix(value, "unix:")
		if !strings.HasPrefix(name, "/") {
			continue
		}
		if !slices.ContainsFunc(container.VolumeMounts, func(v corev1.VolumeMount) bool {
			return name == v.MountPath || strings.HasPrefix(name, v.MountPath+"/")
		}) {
			t.Errorf("%s: %s names a file outside of the mounts %v", file, argument, container.VolumeMounts)
		}
	}
}
