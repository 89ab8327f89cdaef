package conformance

func rules() []rule {
	var all []rule
	for _, some := range [][]rule{taskRules(), scriptRules(), resultRules(), pipelineRules(), referenceRules(), runRules(), accessRules()} {
		all = append(all, some...)
	}
	return all
}
