package weir

import "testing"

func TestMaxKeysHasOneDefault(t *testing.T) {
	for given, want := range map[int]int{-1: DefaultMaxKeys, 0: DefaultMaxKeys, 1: 1, 5000: 5000} {
		keyed, err := NewKeyedWith[int](TokenBucket{Rate: PerSecond(1)}, Options{MaxKeys: given})
		if err != nil {
			t.Fatal(err)
		}
		if got := keyed.maxKeys; got != want {
			t.Errorf("Options.MaxKeys %d: a Keyed of %d keys, want %d", given, got, want)
		}
		if got := NewMemory(MemoryOptions{MaxKeys: given}).Stats().MaxKeys; got != want {
			t.Errorf("MemoryOptions.MaxKeys %d: a Memory of %d keys, want %d", given, got, want)
		}
	}
}
