package picture

import "math"

// scale says how far apart values stand on an axis: by their difference, or by their ratio if log is set. With a unit
// above 0 they stand by their difference from 0 to the unit and by their ratio above it, so a zero has its place.
type scale struct {
	log  bool
	unit float64
}

// place returns where a value stands, in an arbitrary measure.
func (s scale) place(v float64) float64 {
	switch {
	case s.unit > 0 && v <= s.unit:
		return v / s.unit
	case s.unit > 0:
		return 1 + math.Log(v/s.unit)
	case s.log:
		return math.Log(v)
	}
	return v
}

// value returns what stands at a place.
func (s scale) value(place float64) float64 {
	switch {
	case s.unit > 0 && place <= 1:
		return place * s.unit
	case s.unit > 0:
		return s.unit * math.Exp(place-1)
	case s.log:
		return math.Exp(place)
	}
	return place
}

// part returns where a value stands between two others, from 0 to 1.
func (s scale) part(v, low, high float64) float64 {
	return (s.place(v) - s.place(low)) / (s.place(high) - s.place(low))
}

// ticks marks round values.
func (s scale) ticks(low, high float64) []tick {
	switch {
	case s.unit > 0:
		return append([]tick{{0, "0"}}, decades(s.unit, high)...)
	case s.log:
		return decades(low, high)
	}
	return numberTicks(low, high)
}
