{{- /* Written by tools/helm_chart.py: change src/lastcall/manifests, not this file. */ -}}
{{- define "lastcall.grants.agent" -}}
- namespace: ""
  rules:
    # its node's own word on its shutdown
    - apiGroups:
      - lastcall.dev
      resources:
      - nodeshutdowns
      verbs:
      - get
      - create
      - patch
    # priorities, hooks and sidecars of its node's pods; a role cannot name the node
    - apiGroups:
      - ''
      resources:
      - pods
      verbs:
      - list
      - watch
    # during a shutdown: whether Services still send traffic to its pods
    - apiGroups:
      - discovery.k8s.io
      resources:
      - endpointslices
      verbs:
      - list
      - watch
    # whether the leftovers of a shutdown are replaced
    - apiGroups:
      - apps
      resources:
      - replicasets
      verbs:
      - get
    # as replicasets
    - apiGroups:
      - ''
      resources:
      - replicationcontrollers
      verbs:
      - get
- namespace: "lastcall-nodes"
  rules:
    # the Lease of its node, which promises the watchdog's reset, and tells of leases on shared storage
    - apiGroups:
      - coordination.k8s.io
      resources:
      - leases
      verbs:
      - get
      - create
      - patch
{{- end }}

{{- define "lastcall.grants.agent.peers" -}}
- namespace: ""
  rules:
    # its node's own word on its shutdown
    - apiGroups:
      - lastcall.dev
      resources:
      - nodeshutdowns
      verbs:
      - get
      - create
      - patch
    # priorities, hooks and sidecars of its node's pods; a role cannot name the node
    - apiGroups:
      - ''
      resources:
      - pods
      verbs:
      - list
      - watch
    # during a shutdown: whether Services still send traffic to its pods
    - apiGroups:
      - discovery.k8s.io
      resources:
      - endpointslices
      verbs:
      - list
      - watch
    # whether the leftovers of a shutdown are replaced
    - apiGroups:
      - apps
      resources:
      - replicasets
      verbs:
      - get
    # as replicasets
    - apiGroups:
      - ''
      resources:
      - replicationcontrollers
      verbs:
      - get
    # which nodes there are, and where they are asked
    - apiGroups:
      - ''
      resources:
      - nodes
      verbs:
      - list
- namespace: "lastcall-nodes"
  rules:
    # the Lease of its node, which promises the watchdog's reset, and tells of leases on shared storage
    - apiGroups:
      - coordination.k8s.io
      resources:
      - leases
      verbs:
      - get
      - create
      - patch
- namespace: "lastcall-system"
  rules:
    # the keys that agents share
    - apiGroups:
      - ''
      resources:
      - secrets
      resourceNames:
      - lastcall-watchdog-peers
      verbs:
      - get
{{- end }}

{{- define "lastcall.grants.agent.ownNode" -}}
- namespace: ""
  rules:
    # its node's own word on its shutdown
    - apiGroups:
      - lastcall.dev
      resources:
      - nodeshutdowns
      verbs:
      - get
      - create
      - patch
    # priorities, hooks and sidecars of its node's pods; a role cannot name the node
    - apiGroups:
      - ''
      resources:
      - pods
      verbs:
      - list
      - watch
    # during a shutdown: whether Services still send traffic to its pods
    - apiGroups:
      - discovery.k8s.io
      resources:
      - endpointslices
      verbs:
      - list
      - watch
    # whether the leftovers of a shutdown are replaced
    - apiGroups:
      - apps
      resources:
      - replicasets
      verbs:
      - get
    # as replicasets
    - apiGroups:
      - ''
      resources:
      - replicationcontrollers
      verbs:
      - get
    # where the kubelet's identity is missing: cordons its Node, and undoes it
    - apiGroups:
      - ''
      resources:
      - nodes
      verbs:
      - get
      - patch
    # the same: NotReady and the conditions of a shutdown
    - apiGroups:
      - ''
      resources:
      - nodes/status
      verbs:
      - patch
    # the same: so that replacements start while its pods end
    - apiGroups:
      - ''
      resources:
      - pods
      verbs:
      - delete
    # the same: not ready before SIGTERM, and how its pods ended
    - apiGroups:
      - ''
      resources:
      - pods/status
      verbs:
      - patch
- namespace: "lastcall-nodes"
  rules:
    # the Lease of its node, which promises the watchdog's reset, and tells of leases on shared storage
    - apiGroups:
      - coordination.k8s.io
      resources:
      - leases
      verbs:
      - get
      - create
      - patch
- namespace: "kube-node-lease"
  rules:
    # the same: renews its node's Lease while the kubelet is stopped
    - apiGroups:
      - coordination.k8s.io
      resources:
      - leases
      verbs:
      - patch
{{- end }}

{{- define "lastcall.grants.agent.peers.ownNode" -}}
- namespace: ""
  rules:
    # its node's own word on its shutdown
    - apiGroups:
      - lastcall.dev
      resources:
      - nodeshutdowns
      verbs:
      - get
      - create
      - patch
    # priorities, hooks and sidecars of its node's pods; a role cannot name the node
    - apiGroups:
      - ''
      resources:
      - pods
      verbs:
      - list
      - watch
    # during a shutdown: whether Services still send traffic to its pods
    - apiGroups:
      - discovery.k8s.io
      resources:
      - endpointslices
      verbs:
      - list
      - watch
    # whether the leftovers of a shutdown are replaced
    - apiGroups:
      - apps
      resources:
      - replicasets
      verbs:
      - get
    # as replicasets
    - apiGroups:
      - ''
      resources:
      - replicationcontrollers
      verbs:
      - get
    # where the kubelet's identity is missing: cordons its Node, and undoes it
    - apiGroups:
      - ''
      resources:
      - nodes
      verbs:
      - get
      - patch
    # the same: NotReady and the conditions of a shutdown
    - apiGroups:
      - ''
      resources:
      - nodes/status
      verbs:
      - patch
    # the same: so that replacements start while its pods end
    - apiGroups:
      - ''
      resources:
      - pods
      verbs:
      - delete
    # the same: not ready before SIGTERM, and how its pods ended
    - apiGroups:
      - ''
      resources:
      - pods/status
      verbs:
      - patch
    # which nodes there are, and where they are asked
    - apiGroups:
      - ''
      resources:
      - nodes
      verbs:
      - list
- namespace: "lastcall-nodes"
  rules:
    # the Lease of its node, which promises the watchdog's reset, and tells of leases on shared storage
    - apiGroups:
      - coordination.k8s.io
      resources:
      - leases
      verbs:
      - get
      - create
      - patch
- namespace: "kube-node-lease"
  rules:
    # the same: renews its node's Lease while the kubelet is stopped
    - apiGroups:
      - coordination.k8s.io
      resources:
      - leases
      verbs:
      - patch
- namespace: "lastcall-system"
  rules:
    # the keys that agents share
    - apiGroups:
      - ''
      resources:
      - secrets
      resourceNames:
      - lastcall-watchdog-peers
      verbs:
      - get
{{- end }}

{{- define "lastcall.grants.controller.external" -}}
- namespace: ""
  rules:
    # watched; read live, marked, tainted and untainted; given back to load balancers after a drain
    - apiGroups:
      - ''
      resources:
      - nodes
      verbs:
      - get
      - list
      - watch
      - patch
    # of nodes in trouble: read live, deleted, also by force; what replaces them
    - apiGroups:
      - ''
      resources:
      - pods
      verbs:
      - get
      - list
      - delete
    # a pod that is deleted by force has failed, says its status before
    - apiGroups:
      - ''
      resources:
      - pods/status
      verbs:
      - patch
    # which claim a volume that is attached belongs to
    - apiGroups:
      - ''
      resources:
      - persistentvolumes
      verbs:
      - get
    # watched; read live and deleted if nobody else does
    - apiGroups:
      - storage.k8s.io
      resources:
      - volumeattachments
      verbs:
      - list
      - watch
    # what is done is told on the Node and the pods
    - apiGroups:
      - ''
      resources:
      - events
      verbs:
      - create
    # what is to be done
    - apiGroups:
      - lastcall.dev
      resources:
      - fencepolicies
      verbs:
      - list
      - watch
    # whether a policy is heeded
    - apiGroups:
      - lastcall.dev
      resources:
      - fencepolicies/status
      verbs:
      - patch
    # what nodes say of their own shutdowns
    - apiGroups:
      - lastcall.dev
      resources:
      - nodeshutdowns
      verbs:
      - get
      - list
      - watch
    # whether a guard answers
    - apiGroups:
      - discovery.k8s.io
      resources:
      - endpointslices
      verbs:
      - list
    # the guard's webhooks are withdrawn while no guard answers, and put back
    - apiGroups:
      - admissionregistration.k8s.io
      resources:
      - validatingwebhookconfigurations
      resourceNames:
      - lastcall-guard
      verbs:
      - get
      - update
- namespace: "kube-node-lease"
  rules:
    # when nodes were heard
    - apiGroups:
      - coordination.k8s.io
      resources:
      - leases
      verbs:
      - get
      - list
      - watch
- namespace: "lastcall-nodes"
  rules:
    # by which agents promise a watchdog's reset
    - apiGroups:
      - coordination.k8s.io
      resources:
      - leases
      verbs:
      - get
      - list
      - watch
- namespace: "{{ .Release.Namespace }}"
  rules:
    # who leads
    - apiGroups:
      - coordination.k8s.io
      resources:
      - leases
      resourceNames:
      - lastcall-controller
      verbs:
      - get
      - patch
    # the Lease is made anew if somebody deletes it
    - apiGroups:
      - coordination.k8s.io
      resources:
      - leases
      verbs:
      - create
    # the credentials of fences, read when they are needed
    - apiGroups:
      - ''
      resources:
      - secrets
      verbs:
      - get
{{- end }}

{{- define "lastcall.grants.controller.own" -}}
- namespace: ""
  rules:
    # watched; read live, marked, tainted and untainted; given back to load balancers after a drain
    - apiGroups:
      - ''
      resources:
      - nodes
      verbs:
      - get
      - list
      - watch
      - patch
    # of nodes in trouble: read live, deleted, also by force; what replaces them
    - apiGroups:
      - ''
      resources:
      - pods
      verbs:
      - get
      - list
      - delete
    # a pod that is deleted by force has failed, says its status before
    - apiGroups:
      - ''
      resources:
      - pods/status
      verbs:
      - patch
    # which claim a volume that is attached belongs to
    - apiGroups:
      - ''
      resources:
      - persistentvolumes
      verbs:
      - get
    # watched; read live and deleted if nobody else does
    - apiGroups:
      - storage.k8s.io
      resources:
      - volumeattachments
      verbs:
      - get
      - list
      - watch
      - delete
    # what is done is told on the Node and the pods
    - apiGroups:
      - ''
      resources:
      - events
      verbs:
      - create
    # what is to be done
    - apiGroups:
      - lastcall.dev
      resources:
      - fencepolicies
      verbs:
      - list
      - watch
    # whether a policy is heeded
    - apiGroups:
      - lastcall.dev
      resources:
      - fencepolicies/status
      verbs:
      - patch
    # what nodes say of their own shutdowns
    - apiGroups:
      - lastcall.dev
      resources:
      - nodeshutdowns
      verbs:
      - get
      - list
      - watch
    # whether a guard answers
    - apiGroups:
      - discovery.k8s.io
      resources:
      - endpointslices
      verbs:
      - list
    # the guard's webhooks are withdrawn while no guard answers, and put back
    - apiGroups:
      - admissionregistration.k8s.io
      resources:
      - validatingwebhookconfigurations
      resourceNames:
      - lastcall-guard
      verbs:
      - get
      - update
- namespace: "kube-node-lease"
  rules:
    # when nodes were heard
    - apiGroups:
      - coordination.k8s.io
      resources:
      - leases
      verbs:
      - get
      - list
      - watch
- namespace: "lastcall-nodes"
  rules:
    # by which agents promise a watchdog's reset
    - apiGroups:
      - coordination.k8s.io
      resources:
      - leases
      verbs:
      - get
      - list
      - watch
- namespace: "{{ .Release.Namespace }}"
  rules:
    # who leads
    - apiGroups:
      - coordination.k8s.io
      resources:
      - leases
      resourceNames:
      - lastcall-controller
      verbs:
      - get
      - patch
    # the Lease is made anew if somebody deletes it
    - apiGroups:
      - coordination.k8s.io
      resources:
      - leases
      verbs:
      - create
    # the credentials of fences, read when they are needed
    - apiGroups:
      - ''
      resources:
      - secrets
      verbs:
      - get
{{- end }}

{{- define "lastcall.grants.guard.Off" -}}
- namespace: ""
  rules:
    # the members of guarded applications, read live
    - apiGroups:
      - ''
      resources:
      - pods
      verbs:
      - get
      - list
    # whether a namespace is guarded, or being deleted
    - apiGroups:
      - ''
      resources:
      - namespaces
      verbs:
      - get
    # whether a pod's node exists, is out of service, or shuts down; which addresses are not pods'
    - apiGroups:
      - ''
      resources:
      - nodes
      verbs:
      - get
      - list
      - watch
    # owners of pods
    - apiGroups:
      - ''
      resources:
      - replicationcontrollers
      verbs:
      - get
    # owners of pods, and how many they want
    - apiGroups:
      - apps
      resources:
      - statefulsets
      verbs:
      - list
    # the same
    - apiGroups:
      - apps
      resources:
      - replicasets
      verbs:
      - list
    # the same
    - apiGroups:
      - apps
      resources:
      - deployments
      verbs:
      - list
    # owners of pods
    - apiGroups:
      - apps
      resources:
      - daemonsets
      verbs:
      - get
    # owners of pods
    - apiGroups:
      - batch
      resources:
      - jobs
      verbs:
      - get
    # owners of Jobs
    - apiGroups:
      - batch
      resources:
      - cronjobs
      verbs:
      - get
    # nothing is prepared while a budget would refuse
    - apiGroups:
      - policy
      resources:
      - poddisruptionbudgets
      verbs:
      - list
    # what is guarded, and how far it is
    - apiGroups:
      - lastcall.dev
      resources:
      - guardpolicies
      verbs:
      - get
      - list
      - watch
    # requests and preparations are recorded there
    - apiGroups:
      - lastcall.dev
      resources:
      - guardpolicies/status
      verbs:
      - patch
    # what is held is told on the pod and its owner
    - apiGroups:
      - ''
      resources:
      - events
      verbs:
      - create
    # the authority of its certificate, and its path; an uninstallation empties the first one
    - apiGroups:
      - admissionregistration.k8s.io
      resources:
      - validatingwebhookconfigurations
      resourceNames:
      - lastcall-guard
      - lastcall-guard-uninstall
      verbs:
      - get
      - update
- namespace: "default"
  rules:
    # the API server's addresses
    - apiGroups:
      - discovery.k8s.io
      resources:
      - endpointslices
      verbs:
      - list
- namespace: "{{ .Release.Namespace }}"
  rules:
    # which replica prepares
    - apiGroups:
      - coordination.k8s.io
      resources:
      - leases
      resourceNames:
      - lastcall-guard
      verbs:
      - get
      - patch
    # the Lease is made anew if somebody deletes it
    - apiGroups:
      - coordination.k8s.io
      resources:
      - leases
      verbs:
      - create
    # the certificate that all replicas serve with
    - apiGroups:
      - ''
      resources:
      - secrets
      resourceNames:
      - lastcall-guard-tls
      verbs:
      - get
      - update
    # ready pods are deleted in its name
    - apiGroups:
      - ''
      resources:
      - serviceaccounts
      resourceNames:
      - lastcall-guard-releaser
      verbs:
      - impersonate
{{- end }}

{{- define "lastcall.grants.guard.Off.settle" -}}
- namespace: ""
  rules:
    # the members of guarded applications, read live
    - apiGroups:
      - ''
      resources:
      - pods
      verbs:
      - get
      - list
    # whether a namespace is guarded, or being deleted
    - apiGroups:
      - ''
      resources:
      - namespaces
      verbs:
      - get
    # whether a pod's node exists, is out of service, or shuts down; which addresses are not pods'
    - apiGroups:
      - ''
      resources:
      - nodes
      verbs:
      - get
      - list
      - watch
    # owners of pods
    - apiGroups:
      - ''
      resources:
      - replicationcontrollers
      verbs:
      - get
    # owners of pods, and how many they want
    - apiGroups:
      - apps
      resources:
      - statefulsets
      verbs:
      - list
    # the same
    - apiGroups:
      - apps
      resources:
      - replicasets
      verbs:
      - list
    # the same
    - apiGroups:
      - apps
      resources:
      - deployments
      verbs:
      - list
    # owners of pods
    - apiGroups:
      - apps
      resources:
      - daemonsets
      verbs:
      - get
    # owners of pods
    - apiGroups:
      - batch
      resources:
      - jobs
      verbs:
      - get
    # owners of Jobs
    - apiGroups:
      - batch
      resources:
      - cronjobs
      verbs:
      - get
    # nothing is prepared while a budget would refuse
    - apiGroups:
      - policy
      resources:
      - poddisruptionbudgets
      verbs:
      - list
    # what is guarded, and how far it is
    - apiGroups:
      - lastcall.dev
      resources:
      - guardpolicies
      verbs:
      - get
      - list
      - watch
    # requests and preparations are recorded there
    - apiGroups:
      - lastcall.dev
      resources:
      - guardpolicies/status
      verbs:
      - patch
    # what is held is told on the pod and its owner
    - apiGroups:
      - ''
      resources:
      - events
      verbs:
      - create
    # the authority of its certificate, and its path; an uninstallation empties the first one
    - apiGroups:
      - admissionregistration.k8s.io
      resources:
      - validatingwebhookconfigurations
      resourceNames:
      - lastcall-guard
      - lastcall-guard-uninstall
      verbs:
      - get
      - update
    # which new pods get requests
    - apiGroups:
      - ''
      resources:
      - services
      verbs:
      - list
    # the authority of its certificate, and its path
    - apiGroups:
      - admissionregistration.k8s.io
      resources:
      - mutatingwebhookconfigurations
      resourceNames:
      - lastcall-settle
      verbs:
      - get
      - update
- namespace: "default"
  rules:
    # the API server's addresses
    - apiGroups:
      - discovery.k8s.io
      resources:
      - endpointslices
      verbs:
      - list
- namespace: "{{ .Release.Namespace }}"
  rules:
    # which replica prepares
    - apiGroups:
      - coordination.k8s.io
      resources:
      - leases
      resourceNames:
      - lastcall-guard
      verbs:
      - get
      - patch
    # the Lease is made anew if somebody deletes it
    - apiGroups:
      - coordination.k8s.io
      resources:
      - leases
      verbs:
      - create
    # the certificate that all replicas serve with
    - apiGroups:
      - ''
      resources:
      - secrets
      resourceNames:
      - lastcall-guard-tls
      verbs:
      - get
      - update
    # ready pods are deleted in its name
    - apiGroups:
      - ''
      resources:
      - serviceaccounts
      resourceNames:
      - lastcall-guard-releaser
      verbs:
      - impersonate
{{- end }}

{{- define "lastcall.grants.guard.Respond" -}}
- namespace: ""
  rules:
    # the members of guarded applications, read live
    - apiGroups:
      - ''
      resources:
      - pods
      verbs:
      - get
      - list
    # whether a namespace is guarded, or being deleted
    - apiGroups:
      - ''
      resources:
      - namespaces
      verbs:
      - get
    # whether a pod's node exists, is out of service, or shuts down; which addresses are not pods'
    - apiGroups:
      - ''
      resources:
      - nodes
      verbs:
      - get
      - list
      - watch
    # owners of pods
    - apiGroups:
      - ''
      resources:
      - replicationcontrollers
      verbs:
      - get
    # owners of pods, and how many they want
    - apiGroups:
      - apps
      resources:
      - statefulsets
      verbs:
      - list
    # the same
    - apiGroups:
      - apps
      resources:
      - replicasets
      verbs:
      - list
    # the same
    - apiGroups:
      - apps
      resources:
      - deployments
      verbs:
      - list
    # owners of pods
    - apiGroups:
      - apps
      resources:
      - daemonsets
      verbs:
      - get
    # owners of pods
    - apiGroups:
      - batch
      resources:
      - jobs
      verbs:
      - get
    # owners of Jobs
    - apiGroups:
      - batch
      resources:
      - cronjobs
      verbs:
      - get
    # nothing is prepared while a budget would refuse
    - apiGroups:
      - policy
      resources:
      - poddisruptionbudgets
      verbs:
      - list
    # what is guarded, and how far it is
    - apiGroups:
      - lastcall.dev
      resources:
      - guardpolicies
      verbs:
      - get
      - list
      - watch
    # requests and preparations are recorded there
    - apiGroups:
      - lastcall.dev
      resources:
      - guardpolicies/status
      verbs:
      - patch
    # what is held is told on the pod and its owner
    - apiGroups:
      - ''
      resources:
      - events
      verbs:
      - create
    # the authority of its certificate, and its path; an uninstallation empties the first one
    - apiGroups:
      - admissionregistration.k8s.io
      resources:
      - validatingwebhookconfigurations
      resourceNames:
      - lastcall-guard
      - lastcall-guard-uninstall
      verbs:
      - get
      - update
    # the evictions of pods that it guards
    - apiGroups:
      - lifecycle.k8s.io
      resources:
      - evictions
      verbs:
      - list
      - watch
    # how far the application is
    - apiGroups:
      - lifecycle.k8s.io
      resources:
      - evictions/status
      verbs:
      - patch
- namespace: "default"
  rules:
    # the API server's addresses
    - apiGroups:
      - discovery.k8s.io
      resources:
      - endpointslices
      verbs:
      - list
- namespace: "{{ .Release.Namespace }}"
  rules:
    # which replica prepares
    - apiGroups:
      - coordination.k8s.io
      resources:
      - leases
      resourceNames:
      - lastcall-guard
      verbs:
      - get
      - patch
    # the Lease is made anew if somebody deletes it
    - apiGroups:
      - coordination.k8s.io
      resources:
      - leases
      verbs:
      - create
    # the certificate that all replicas serve with
    - apiGroups:
      - ''
      resources:
      - secrets
      resourceNames:
      - lastcall-guard-tls
      verbs:
      - get
      - update
    # ready pods are deleted in its name
    - apiGroups:
      - ''
      resources:
      - serviceaccounts
      resourceNames:
      - lastcall-guard-releaser
      verbs:
      - impersonate
{{- end }}

{{- define "lastcall.grants.guard.Respond.settle" -}}
- namespace: ""
  rules:
    # the members of guarded applications, read live
    - apiGroups:
      - ''
      resources:
      - pods
      verbs:
      - get
      - list
    # whether a namespace is guarded, or being deleted
    - apiGroups:
      - ''
      resources:
      - namespaces
      verbs:
      - get
    # whether a pod's node exists, is out of service, or shuts down; which addresses are not pods'
    - apiGroups:
      - ''
      resources:
      - nodes
      verbs:
      - get
      - list
      - watch
    # owners of pods
    - apiGroups:
      - ''
      resources:
      - replicationcontrollers
      verbs:
      - get
    # owners of pods, and how many they want
    - apiGroups:
      - apps
      resources:
      - statefulsets
      verbs:
      - list
    # the same
    - apiGroups:
      - apps
      resources:
      - replicasets
      verbs:
      - list
    # the same
    - apiGroups:
      - apps
      resources:
      - deployments
      verbs:
      - list
    # owners of pods
    - apiGroups:
      - apps
      resources:
      - daemonsets
      verbs:
      - get
    # owners of pods
    - apiGroups:
      - batch
      resources:
      - jobs
      verbs:
      - get
    # owners of Jobs
    - apiGroups:
      - batch
      resources:
      - cronjobs
      verbs:
      - get
    # nothing is prepared while a budget would refuse
    - apiGroups:
      - policy
      resources:
      - poddisruptionbudgets
      verbs:
      - list
    # what is guarded, and how far it is
    - apiGroups:
      - lastcall.dev
      resources:
      - guardpolicies
      verbs:
      - get
      - list
      - watch
    # requests and preparations are recorded there
    - apiGroups:
      - lastcall.dev
      resources:
      - guardpolicies/status
      verbs:
      - patch
    # what is held is told on the pod and its owner
    - apiGroups:
      - ''
      resources:
      - events
      verbs:
      - create
    # the authority of its certificate, and its path; an uninstallation empties the first one
    - apiGroups:
      - admissionregistration.k8s.io
      resources:
      - validatingwebhookconfigurations
      resourceNames:
      - lastcall-guard
      - lastcall-guard-uninstall
      verbs:
      - get
      - update
    # the evictions of pods that it guards
    - apiGroups:
      - lifecycle.k8s.io
      resources:
      - evictions
      verbs:
      - list
      - watch
    # how far the application is
    - apiGroups:
      - lifecycle.k8s.io
      resources:
      - evictions/status
      verbs:
      - patch
    # which new pods get requests
    - apiGroups:
      - ''
      resources:
      - services
      verbs:
      - list
    # the authority of its certificate, and its path
    - apiGroups:
      - admissionregistration.k8s.io
      resources:
      - mutatingwebhookconfigurations
      resourceNames:
      - lastcall-settle
      verbs:
      - get
      - update
- namespace: "default"
  rules:
    # the API server's addresses
    - apiGroups:
      - discovery.k8s.io
      resources:
      - endpointslices
      verbs:
      - list
- namespace: "{{ .Release.Namespace }}"
  rules:
    # which replica prepares
    - apiGroups:
      - coordination.k8s.io
      resources:
      - leases
      resourceNames:
      - lastcall-guard
      verbs:
      - get
      - patch
    # the Lease is made anew if somebody deletes it
    - apiGroups:
      - coordination.k8s.io
      resources:
      - leases
      verbs:
      - create
    # the certificate that all replicas serve with
    - apiGroups:
      - ''
      resources:
      - secrets
      resourceNames:
      - lastcall-guard-tls
      verbs:
      - get
      - update
    # ready pods are deleted in its name
    - apiGroups:
      - ''
      resources:
      - serviceaccounts
      resourceNames:
      - lastcall-guard-releaser
      verbs:
      - impersonate
{{- end }}

{{- define "lastcall.grants.guard.Control" -}}
- namespace: ""
  rules:
    # the members of guarded applications, read live
    - apiGroups:
      - ''
      resources:
      - pods
      verbs:
      - get
      - list
    # whether a namespace is guarded, or being deleted
    - apiGroups:
      - ''
      resources:
      - namespaces
      verbs:
      - get
    # whether a pod's node exists, is out of service, or shuts down; which addresses are not pods'
    - apiGroups:
      - ''
      resources:
      - nodes
      verbs:
      - get
      - list
      - watch
    # owners of pods
    - apiGroups:
      - ''
      resources:
      - replicationcontrollers
      verbs:
      - get
    # owners of pods, and how many they want
    - apiGroups:
      - apps
      resources:
      - statefulsets
      verbs:
      - list
    # the same
    - apiGroups:
      - apps
      resources:
      - replicasets
      verbs:
      - list
    # the same
    - apiGroups:
      - apps
      resources:
      - deployments
      verbs:
      - list
    # owners of pods
    - apiGroups:
      - apps
      resources:
      - daemonsets
      verbs:
      - get
    # owners of pods
    - apiGroups:
      - batch
      resources:
      - jobs
      verbs:
      - get
    # owners of Jobs
    - apiGroups:
      - batch
      resources:
      - cronjobs
      verbs:
      - get
    # nothing is prepared while a budget would refuse
    - apiGroups:
      - policy
      resources:
      - poddisruptionbudgets
      verbs:
      - list
    # what is guarded, and how far it is
    - apiGroups:
      - lastcall.dev
      resources:
      - guardpolicies
      verbs:
      - get
      - list
      - watch
    # requests and preparations are recorded there
    - apiGroups:
      - lastcall.dev
      resources:
      - guardpolicies/status
      verbs:
      - patch
    # what is held is told on the pod and its owner
    - apiGroups:
      - ''
      resources:
      - events
      verbs:
      - create
    # the authority of its certificate, and its path; an uninstallation empties the first one
    - apiGroups:
      - admissionregistration.k8s.io
      resources:
      - validatingwebhookconfigurations
      resourceNames:
      - lastcall-guard
      - lastcall-guard-uninstall
      verbs:
      - get
      - update
    # the evictions of pods that it guards
    - apiGroups:
      - lifecycle.k8s.io
      resources:
      - evictions
      verbs:
      - list
      - watch
    # how far the application is
    - apiGroups:
      - lifecycle.k8s.io
      resources:
      - evictions/status
      verbs:
      - patch
    # one for each pod that is to go, with labels and owners
    - apiGroups:
      - lifecycle.k8s.io
      resources:
      - evictions
      verbs:
      - create
      - get
      - patch
    # who requests which eviction
    - apiGroups:
      - lifecycle.k8s.io
      resources:
      - evictionrequests
      verbs:
      - list
      - watch
    # what has become of it
    - apiGroups:
      - lifecycle.k8s.io
      resources:
      - evictionrequests/status
      verbs:
      - patch
    # pods whose other responders are done; budgets and webhooks hold
    - apiGroups:
      - ''
      resources:
      - pods/eviction
      verbs:
      - create
- namespace: "default"
  rules:
    # the API server's addresses
    - apiGroups:
      - discovery.k8s.io
      resources:
      - endpointslices
      verbs:
      - list
- namespace: "{{ .Release.Namespace }}"
  rules:
    # which replica prepares
    - apiGroups:
      - coordination.k8s.io
      resources:
      - leases
      resourceNames:
      - lastcall-guard
      verbs:
      - get
      - patch
    # the Lease is made anew if somebody deletes it
    - apiGroups:
      - coordination.k8s.io
      resources:
      - leases
      verbs:
      - create
    # the certificate that all replicas serve with
    - apiGroups:
      - ''
      resources:
      - secrets
      resourceNames:
      - lastcall-guard-tls
      verbs:
      - get
      - update
    # ready pods are deleted in its name
    - apiGroups:
      - ''
      resources:
      - serviceaccounts
      resourceNames:
      - lastcall-guard-releaser
      verbs:
      - impersonate
{{- end }}

{{- define "lastcall.grants.guard.Control.settle" -}}
- namespace: ""
  rules:
    # the members of guarded applications, read live
    - apiGroups:
      - ''
      resources:
      - pods
      verbs:
      - get
      - list
    # whether a namespace is guarded, or being deleted
    - apiGroups:
      - ''
      resources:
      - namespaces
      verbs:
      - get
    # whether a pod's node exists, is out of service, or shuts down; which addresses are not pods'
    - apiGroups:
      - ''
      resources:
      - nodes
      verbs:
      - get
      - list
      - watch
    # owners of pods
    - apiGroups:
      - ''
      resources:
      - replicationcontrollers
      verbs:
      - get
    # owners of pods, and how many they want
    - apiGroups:
      - apps
      resources:
      - statefulsets
      verbs:
      - list
    # the same
    - apiGroups:
      - apps
      resources:
      - replicasets
      verbs:
      - list
    # the same
    - apiGroups:
      - apps
      resources:
      - deployments
      verbs:
      - list
    # owners of pods
    - apiGroups:
      - apps
      resources:
      - daemonsets
      verbs:
      - get
    # owners of pods
    - apiGroups:
      - batch
      resources:
      - jobs
      verbs:
      - get
    # owners of Jobs
    - apiGroups:
      - batch
      resources:
      - cronjobs
      verbs:
      - get
    # nothing is prepared while a budget would refuse
    - apiGroups:
      - policy
      resources:
      - poddisruptionbudgets
      verbs:
      - list
    # what is guarded, and how far it is
    - apiGroups:
      - lastcall.dev
      resources:
      - guardpolicies
      verbs:
      - get
      - list
      - watch
    # requests and preparations are recorded there
    - apiGroups:
      - lastcall.dev
      resources:
      - guardpolicies/status
      verbs:
      - patch
    # what is held is told on the pod and its owner
    - apiGroups:
      - ''
      resources:
      - events
      verbs:
      - create
    # the authority of its certificate, and its path; an uninstallation empties the first one
    - apiGroups:
      - admissionregistration.k8s.io
      resources:
      - validatingwebhookconfigurations
      resourceNames:
      - lastcall-guard
      - lastcall-guard-uninstall
      verbs:
      - get
      - update
    # the evictions of pods that it guards
    - apiGroups:
      - lifecycle.k8s.io
      resources:
      - evictions
      verbs:
      - list
      - watch
    # how far the application is
    - apiGroups:
      - lifecycle.k8s.io
      resources:
      - evictions/status
      verbs:
      - patch
    # one for each pod that is to go, with labels and owners
    - apiGroups:
      - lifecycle.k8s.io
      resources:
      - evictions
      verbs:
      - create
      - get
      - patch
    # who requests which eviction
    - apiGroups:
      - lifecycle.k8s.io
      resources:
      - evictionrequests
      verbs:
      - list
      - watch
    # what has become of it
    - apiGroups:
      - lifecycle.k8s.io
      resources:
      - evictionrequests/status
      verbs:
      - patch
    # pods whose other responders are done; budgets and webhooks hold
    - apiGroups:
      - ''
      resources:
      - pods/eviction
      verbs:
      - create
    # which new pods get requests
    - apiGroups:
      - ''
      resources:
      - services
      verbs:
      - list
    # the authority of its certificate, and its path
    - apiGroups:
      - admissionregistration.k8s.io
      resources:
      - mutatingwebhookconfigurations
      resourceNames:
      - lastcall-settle
      verbs:
      - get
      - update
- namespace: "default"
  rules:
    # the API server's addresses
    - apiGroups:
      - discovery.k8s.io
      resources:
      - endpointslices
      verbs:
      - list
- namespace: "{{ .Release.Namespace }}"
  rules:
    # which replica prepares
    - apiGroups:
      - coordination.k8s.io
      resources:
      - leases
      resourceNames:
      - lastcall-guard
      verbs:
      - get
      - patch
    # the Lease is made anew if somebody deletes it
    - apiGroups:
      - coordination.k8s.io
      resources:
      - leases
      verbs:
      - create
    # the certificate that all replicas serve with
    - apiGroups:
      - ''
      resources:
      - secrets
      resourceNames:
      - lastcall-guard-tls
      verbs:
      - get
      - update
    # ready pods are deleted in its name
    - apiGroups:
      - ''
      resources:
      - serviceaccounts
      resourceNames:
      - lastcall-guard-releaser
      verbs:
      - impersonate
{{- end }}

{{- define "lastcall.grants.guardAccess" -}}
- namespace: ""
  rules:
    # credentials that a GuardPolicy names
    - apiGroups:
      - ''
      resources:
      - secrets
      verbs:
      - get
    # commands of the providers exec and rabbitmq
    - apiGroups:
      - ''
      resources:
      - pods/exec
      verbs:
      - get
      - create
    # the condition for which the agent of a node that shuts down waits
    - apiGroups:
      - ''
      resources:
      - pods/status
      verbs:
      - patch
{{- end }}

{{- define "lastcall.grants.guardReleaser" -}}
- namespace: ""
  rules:
    # ready pods, by their uid
    - apiGroups:
      - ''
      resources:
      - pods
      verbs:
      - delete
{{- end }}

{{- define "lastcall.viewerRules" -}}
- apiGroups:
  - ''
  resources:
  - namespaces
  - nodes
  - persistentvolumeclaims
  - persistentvolumes
  - pods
  - replicationcontrollers
  - services
  verbs:
  - get
  - list
- apiGroups:
  - apps
  resources:
  - daemonsets
  - deployments
  - replicasets
  - statefulsets
  verbs:
  - get
  - list
- apiGroups:
  - autoscaling
  resources:
  - horizontalpodautoscalers
  verbs:
  - get
  - list
- apiGroups:
  - batch
  resources:
  - jobs
  verbs:
  - get
  - list
- apiGroups:
  - coordination.k8s.io
  resources:
  - leases
  verbs:
  - get
  - list
- apiGroups:
  - discovery.k8s.io
  resources:
  - endpointslices
  verbs:
  - get
  - list
- apiGroups:
  - lastcall.dev
  resources:
  - fencepolicies
  - guardpolicies
  - nodeshutdowns
  verbs:
  - get
  - list
- apiGroups:
  - policy
  resources:
  - poddisruptionbudgets
  verbs:
  - get
  - list
- apiGroups:
  - scheduling.k8s.io
  resources:
  - priorityclasses
  verbs:
  - get
  - list
- apiGroups:
  - storage.k8s.io
  resources:
  - csinodes
  - storageclasses
  - volumeattachments
  verbs:
  - get
  - list
{{- end }}

{{- define "lastcall.drainerClusterRoleRules" -}}
- apiGroups:
  - ''
  resources:
  - nodes
  verbs:
  - get
  - list
  - watch
  - patch
- apiGroups:
  - ''
  resources:
  - nodes/status
  verbs:
  - patch
- apiGroups:
  - ''
  resources:
  - pods
  verbs:
  - list
  - watch
- apiGroups:
  - ''
  resources:
  - pods/eviction
  verbs:
  - create
- apiGroups:
  - ''
  resources:
  - pods
  verbs:
  - delete
- apiGroups:
  - ''
  resources:
  - namespaces
  verbs:
  - get
  - list
- apiGroups:
  - ''
  resources:
  - events
  verbs:
  - create
- apiGroups:
  - ''
  resources:
  - services
  verbs:
  - list
- apiGroups:
  - ''
  resources:
  - persistentvolumes
  verbs:
  - list
- apiGroups:
  - ''
  resources:
  - persistentvolumeclaims
  verbs:
  - list
- apiGroups:
  - ''
  resources:
  - replicationcontrollers
  verbs:
  - list
- apiGroups:
  - apps
  resources:
  - daemonsets
  verbs:
  - list
- apiGroups:
  - apps
  resources:
  - deployments
  verbs:
  - list
- apiGroups:
  - apps
  resources:
  - replicasets
  verbs:
  - list
- apiGroups:
  - apps
  resources:
  - statefulsets
  verbs:
  - list
- apiGroups:
  - autoscaling
  resources:
  - horizontalpodautoscalers
  verbs:
  - list
- apiGroups:
  - policy
  resources:
  - poddisruptionbudgets
  verbs:
  - list
  - watch
- apiGroups:
  - discovery.k8s.io
  resources:
  - endpointslices
  verbs:
  - list
  - watch
- apiGroups:
  - storage.k8s.io
  resources:
  - csinodes
  verbs:
  - list
- apiGroups:
  - lastcall.dev
  resources:
  - guardpolicies
  verbs:
  - list
- apiGroups:
  - nodemaintenance.medik8s.io
  resources:
  - nodemaintenances
  verbs:
  - list
{{- end }}

{{- define "lastcall.drainerRoleRules" -}}
- apiGroups:
  - coordination.k8s.io
  resources:
  - leases
  verbs:
  - get
  - create
  - update
  - delete
{{- end }}

{{- define "lastcall.ownNodePolicy" -}}
failurePolicy: Fail
matchConstraints:
  resourceRules:
  - apiGroups:
    - coordination.k8s.io
    apiVersions:
    - v1
    operations:
    - CREATE
    - UPDATE
    - DELETE
    resources:
    - leases
    scope: '*'
  - apiGroups:
    - lastcall.dev
    apiVersions:
    - v1alpha1
    operations:
    - CREATE
    - UPDATE
    - DELETE
    resources:
    - nodeshutdowns
    scope: '*'
  - apiGroups:
    - ''
    apiVersions:
    - v1
    operations:
    - CREATE
    - UPDATE
    - DELETE
    resources:
    - nodes
    - nodes/status
    scope: '*'
  - apiGroups:
    - ''
    apiVersions:
    - v1
    operations:
    - CREATE
    - UPDATE
    - DELETE
    resources:
    - pods
    - pods/status
    scope: '*'
matchConditions:
- name: an-agent
  expression: request.userInfo.username == 'system:serviceaccount:lastcall-system:lastcall-agent'
variables:
- name: node
  expression: 'request.resource.resource == ''pods'' ? oldObject.spec.?nodeName.orValue('''') : object == null ? oldObject.metadata.name : object.metadata.name'
validations:
- expression: has(request.userInfo.extra) && 'authentication.kubernetes.io/node-name' in request.userInfo.extra && request.userInfo.extra['authentication.kubernetes.io/node-name'] == [variables.node]
  message: 'an agent writes of its own node alone: its token has to be bound to that Node, or to a pod there'
  reason: Forbidden
- expression: request.resource.resource != 'nodes' || (object.spec.?taints.orValue([]) == oldObject.spec.?taints.orValue([]) && object.metadata.?labels.orValue({}) == oldObject.metadata.?labels.orValue({}))
  message: an agent changes neither taints nor labels of its Node
  reason: Forbidden
- expression: request.resource.resource != 'pods' || object == null || object.metadata.?labels.orValue({}) == oldObject.metadata.?labels.orValue({})
  message: an agent does not change the labels of a pod
  reason: Forbidden
{{- end }}
