package query

import "time"

func init() { auditPauses = make([]time.Duration, 2) }
