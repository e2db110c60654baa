{{- /* Written by tools/helm_chart.py: change src/lastcall/manifests, not this file. */ -}}
{{- define "lastcall.podPolicy.settle" -}}
failurePolicy: Ignore
reinvocationPolicy: IfNeeded
matchConstraints:
  matchPolicy: Equivalent
  namespaceSelector:
    matchExpressions:
    - key: lastcall.dev/settle-seconds
      operator: Exists
  objectSelector: {}
  resourceRules:
  - apiGroups:
    - ''
    apiVersions:
    - v1
    operations:
    - CREATE
    resources:
    - pods
    scope: '*'
matchConditions:
- name: no-mirror-pod
  expression: '!(''kubernetes.io/config.mirror'' in object.metadata.?annotations.orValue({}))'
- name: no-job
  expression: '!object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false) && o.kind == ''Job'')'
- name: ends-with-grace
  expression: object.spec.?terminationGracePeriodSeconds.orValue(30) > 0
- name: serves-without-hook
  expression: object.spec.containers.exists(c, has(c.ports) && size(c.ports) > 0 && (!has(c.lifecycle) || !has(c.lifecycle.preStop))) || object.spec.?initContainers.orValue([]).exists(c, c.?restartPolicy.orValue('') == 'Always' && has(c.ports) && size(c.ports) > 0 && (!has(c.lifecycle) || !has(c.lifecycle.preStop)))
variables:
- name: asked
  expression: object.metadata.?annotations[?'lastcall.dev/settle-seconds'].orValue(namespaceObject.metadata.?labels[?'lastcall.dev/settle-seconds'].orValue(''))
- name: seconds
  expression: 'variables.asked.matches(''^[0-9]{1,3}$'') ? int(variables.asked) : {{ .Values.podPolicies.settleSeconds | int }}'
- name: grace
  expression: object.spec.?terminationGracePeriodSeconds.orValue(30)
- name: controlled
  expression: object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false))
- name: added
  expression: '''lastcall.dev/sleep-seconds-added'' in object.metadata.?annotations.orValue({})'
mutations:
- patchType: ApplyConfiguration
  applyConfiguration:
    expression: 'variables.seconds == 0 || (!variables.controlled && variables.grace <= variables.seconds) ? Object{} : Object{metadata: Object.metadata{annotations: {''lastcall.dev/sleep-seconds-added'': string(variables.seconds)}}, spec: Object.spec{terminationGracePeriodSeconds: variables.grace + (variables.controlled && !variables.added ? variables.seconds : 0), containers: object.spec.?containers.orValue([]).filter(c, !has(c.lifecycle) || !has(c.lifecycle.preStop)).map(c, Object.spec.containers{name: c.name, lifecycle: Object.spec.containers.lifecycle{preStop: Object.spec.containers.lifecycle.preStop{sleep: Object.spec.containers.lifecycle.preStop.sleep{seconds: variables.seconds}}}}), initContainers: object.spec.?initContainers.orValue([]).filter(c, c.?restartPolicy.orValue('''') == ''Always'' && (!has(c.lifecycle) || !has(c.lifecycle.preStop))).map(c, Object.spec.initContainers{name: c.name, lifecycle: Object.spec.initContainers.lifecycle{preStop: Object.spec.initContainers.lifecycle.preStop{sleep: Object.spec.initContainers.lifecycle.preStop.sleep{seconds: variables.seconds}}}})}}'
{{- end }}

{{- define "lastcall.podPolicy.priority" -}}
failurePolicy: Ignore
reinvocationPolicy: Never
matchConstraints:
  matchPolicy: Equivalent
  namespaceSelector:
    matchExpressions:
    - key: lastcall.dev/settle-seconds
      operator: Exists
  objectSelector: {}
  resourceRules:
  - apiGroups:
    - ''
    apiVersions:
    - v1
    operations:
    - CREATE
    resources:
    - pods
    scope: '*'
matchConditions:
- name: no-mirror-pod
  expression: '!(''kubernetes.io/config.mirror'' in object.metadata.?annotations.orValue({}))'
- name: has-priority
  expression: has(object.spec.priority) && !('lastcall.dev/priority' in object.metadata.?annotations.orValue({}))
mutations:
- patchType: ApplyConfiguration
  applyConfiguration:
    expression: 'Object{metadata: Object.metadata{annotations: {''lastcall.dev/priority'': string(object.spec.priority)}}}'
{{- end }}
