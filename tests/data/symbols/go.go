package p
type S struct {
	X int
}
type (
	A int
	B string
)
func (s *S) M() {}
func (s G[T]) N() {}
func F() { x := 1 }
var (
	v1 = 1
	v2, v3 = 2, 3
)
const C = 1
