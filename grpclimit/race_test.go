//go:build race

package grpclimit_test

func init() { lostByPools = 3 }
