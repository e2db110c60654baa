{{- /* Written by tools/helm_chart.py: change src/lastcall/manifests, not this file. */ -}}
{{- define "lastcall.guardWebhooks" -}}
- name: delete.guard.lastcall.dev
  clientConfig:
    service: &id001
      namespace: lastcall-system
      name: lastcall-guard
      port: 443
  rules:
  - apiGroups:
    - ''
    apiVersions:
    - v1
    operations:
    - DELETE
    resources:
    - pods
    scope: Namespaced
  namespaceSelector:
    matchExpressions:
    - key: lastcall.dev/guard-enabled
      operator: In
      values:
      - 'true'
    - key: kubernetes.io/metadata.name
      operator: NotIn
      values:
      - kube-system
      - lastcall-system
  objectSelector: {}
  matchConditions:
  - name: not-by-a-kubelet
    expression: '!request.userInfo.username.startsWith(''system:node:'')'
  - name: alive
    expression: oldObject == null || (!has(oldObject.metadata.deletionTimestamp) && !(has(oldObject.status) && has(oldObject.status.phase) && oldObject.status.phase in ['Succeeded', 'Failed']))
  matchPolicy: Equivalent
  failurePolicy: {{ .Values.guard.failurePolicy }}
  sideEffects: NoneOnDryRun
  timeoutSeconds: 5
  admissionReviewVersions:
  - v1
  - v1beta1
- name: evict.guard.lastcall.dev
  clientConfig:
    service: *id001
  rules:
  - apiGroups:
    - ''
    apiVersions:
    - v1
    operations:
    - CREATE
    resources:
    - pods/eviction
    scope: Namespaced
  namespaceSelector:
    matchExpressions:
    - key: lastcall.dev/guard-enabled
      operator: In
      values:
      - 'true'
    - key: kubernetes.io/metadata.name
      operator: NotIn
      values:
      - kube-system
      - lastcall-system
  objectSelector: {}
  matchConditions:
  - name: not-by-a-kubelet
    expression: '!request.userInfo.username.startsWith(''system:node:'')'
  matchPolicy: Equivalent
  failurePolicy: {{ .Values.guard.failurePolicy }}
  sideEffects: NoneOnDryRun
  timeoutSeconds: 5
  admissionReviewVersions:
  - v1
  - v1beta1
{{- end }}

{{- define "lastcall.guardUninstallWebhooks" -}}
- name: uninstall.guard.lastcall.dev
  clientConfig:
    service:
      namespace: lastcall-system
      name: lastcall-guard
      port: 443
  rules:
  - apiGroups:
    - ''
    apiVersions:
    - v1
    operations:
    - CREATE
    resources:
    - configmaps
    scope: Namespaced
  namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: lastcall-system
  objectSelector: {}
  matchConditions:
  - name: asks-for-the-end
    expression: object.metadata.name == 'lastcall-guard-uninstall'
  matchPolicy: Equivalent
  failurePolicy: Ignore
  sideEffects: NoneOnDryRun
  timeoutSeconds: 30
  admissionReviewVersions:
  - v1
  - v1beta1
{{- end }}

{{- define "lastcall.settleWebhooks" -}}
- name: settle.pods.lastcall.dev
  clientConfig:
    service:
      namespace: lastcall-system
      name: lastcall-guard
      port: 443
  rules:
  - apiGroups:
    - ''
    apiVersions:
    - v1
    operations:
    - CREATE
    resources:
    - pods
    scope: Namespaced
  namespaceSelector:
    matchExpressions:
    - key: lastcall.dev/settle-seconds
      operator: Exists
  objectSelector: {}
  matchConditions:
  - name: no-mirror-pod
    expression: '!(''kubernetes.io/config.mirror'' in object.metadata.?annotations.orValue({}))'
  matchPolicy: Equivalent
  reinvocationPolicy: IfNeeded
  failurePolicy: Ignore
  sideEffects: None
  timeoutSeconds: 3
  admissionReviewVersions:
  - v1
  - v1beta1
{{- end }}

{{- define "lastcall.guardProviderRights" -}}
failurePolicy: Fail
matchConstraints:
  resourceRules:
  - apiGroups:
    - lastcall.dev
    apiVersions:
    - '*'
    operations:
    - CREATE
    - UPDATE
    resources:
    - guardpolicies
    scope: '*'
validations:
- expression: '!object.spec.provider.exists(name, name in [''exec'', ''rabbitmq'']) || authorizer.group('''').resource(''pods'').subresource(''exec'').namespace(object.metadata.namespace).check(''create'').allowed()'
  message: 'spec.provider: whoever has commands run (exec, rabbitmq) must have the right to create pods/exec in this namespace'
  reason: Forbidden
- expression: object.spec.provider.all(provider, dyn(object.spec.provider[provider]).all(field, !field.endsWith('Secret') || type(dyn(object.spec.provider[provider])[field]) != map || !has(dyn(object.spec.provider[provider])[field].name) || authorizer.group('').resource('secrets').namespace(object.metadata.namespace).name(string(dyn(object.spec.provider[provider])[field].name)).check('get').allowed()))
  message: 'spec.provider: whoever names a Secret must have the right to get it in this namespace'
  reason: Forbidden
{{- end }}

{{- define "lastcall.guardResponder" -}}
failurePolicy: Ignore
paramKind:
  apiVersion: apiregistration.k8s.io/v1
  kind: APIService
reinvocationPolicy: Never
matchConstraints:
  matchPolicy: Equivalent
  namespaceSelector:
    matchLabels:
      lastcall.dev/guard-enabled: 'true'
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
- name: not-named
  expression: '!object.spec.?evictionResponders.orValue([]).exists(one, one.name == ''lastcall.dev/guard'')'
- name: has-room
  expression: size(object.spec.?evictionResponders.orValue([])) < 10
- name: no-group
  expression: '!has(object.spec.schedulingGroup)'
mutations:
- patchType: JSONPatch
  jsonPatch:
    expression: 'size(object.spec.?evictionResponders.orValue([])) == 0 ? [JSONPatch{op: ''add'', path: ''/spec/evictionResponders'', value: [{''name'': dyn(''lastcall.dev/guard''), ''priority'': dyn(10001)}]}] : [JSONPatch{op: ''add'', path: ''/spec/evictionResponders/-'', value: {''name'': dyn(''lastcall.dev/guard''), ''priority'': dyn(10001)}}]'
{{- end }}
