package simulate

// jain returns Jain's index of fairness: (Σx)² / (n Σx²). It is 1 if all are equal, and 1/n if one has everything. It
// is 0 if none has anything.
func jain(amounts []int64) float64 {
	sum, squares := 0.0, 0.0
	for _, x := range amounts {
		sum += float64(x)
		squares += float64(float64(x) * float64(x))
	}
	if squares == 0 {
		return 0
	}
	return float64(sum*sum) / float64(float64(len(amounts))*squares)
}
