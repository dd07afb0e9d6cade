package main

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
)

// readProfile reads a KubeSchedulerConfiguration as kube-scheduler does: decoded strictly, defaulted, converted and
// validated. It gives the profile of default-scheduler or, when there is none, the first. All nodes are looked at,
// whatever the configuration says.
func readProfile(raw []byte) (*config.KubeSchedulerProfile, error) {
	obj, _, err := scheme.Codecs.UniversalDecoder().Decode(raw, nil, nil)
	if err != nil {
		return nil, err
	}
	cfg, ok := obj.(*config.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("not a KubeSchedulerConfiguration: %T", obj)
	}
	cfg.APIVersion = "kubescheduler.config.k8s.io/v1" // as kube-scheduler sets it: validation looks at it
	if errs := validation.ValidateKubeSchedulerConfiguration(cfg); errs != nil {
		return nil, errs
	}
	if len(cfg.Extenders) > 0 {
		return nil, fmt.Errorf("extenders cannot be asked here")
	}
	profile := &cfg.Profiles[0]
	for i := range cfg.Profiles {
		if cfg.Profiles[i].SchedulerName == v1.DefaultSchedulerName {
			profile = &cfg.Profiles[i]
		}
	}
	profile.PercentageOfNodesToScore = nil
	return profile, nil
}
