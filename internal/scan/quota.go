package scan

import "strings"

// calendarUnits rewrites the names of units of the calendar.
var calendarUnits = map[string]string{
	"day": "day", "days": "day", "daily": "day", "week": "week", "weeks": "week", "weekly": "week",
	"month": "month", "months": "month", "monthly": "month", "quarter": "quarter", "quarters": "quarter", "quarterly": "quarter",
	"year": "year", "years": "year", "yearly": "year", "annually": "year",
}

// meantQuota returns a text whose limits of a calendar unit are quotas, or "" if it has none.
func meantQuota(text string) string {
	limits, found := strings.Split(text, " and "), false
	for i, limit := range limits {
		if quota := quotaOf(limit); quota != "" {
			limits[i], found = quota, true
		}
	}
	if !found {
		return ""
	}
	return strings.Join(limits, " and ")
}

// quotaOf returns a limit as a quota, such as 500 calls a day in Europe/Paris. It returns "" for a rate such as 60 per day,
// which has a text of its own.
func quotaOf(limit string) string {
	var count, unit string
	var rest []string // a zone keeps its case
	isQuota := false
	for word := range strings.FieldsSeq(limit) {
		number, name, both := strings.Cut(strings.ToLower(word), "/")
		switch known := calendarUnits[name]; {
		case both && known != "" && isDigits(number):
			count, unit = number, known
		case count == "" && isDigits(number) && (!both || name == ""):
			count = number
		case unit == "" && calendarUnits[number] != "":
			unit = calendarUnits[number]
		case number == "quota":
			isQuota = true
		case noise[number] && !both:
		default:
			rest = append(rest, word)
		}
	}
	if count == "" || unit == "" || !isQuota && len(rest) == 0 && (unit == "day" || unit == "week") {
		return ""
	}
	return strings.Join(append([]string{"quota", count + "/" + unit}, rest...), " ")
}

// noise are words between a count and its unit.
var noise = map[string]bool{
	"": true, "per": true, "a": true, "an": true, "each": true, "every": true,
	"requests": true, "calls": true, "tokens": true, "units": true, "fixed": true, "window": true,
}

func isDigits(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }
