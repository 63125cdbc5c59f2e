package rand

import (
	"math/rand"
	"testing"
)

func BenchmarkRandInt(b *testing.B) {
	for b.Loop() {
		rand.Int()
	}
}
