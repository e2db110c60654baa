{{- /* The labels of all objects of a component: include with (list "agent" $). */ -}}
{{- define "lastcall.labels" -}}
{{- $component := index . 0 -}}{{- $root := index . 1 -}}
app.kubernetes.io/name: lastcall
app.kubernetes.io/component: {{ $component }}
app.kubernetes.io/part-of: lastcall
{{ include "lastcall.chartLabels" $root }}
{{- end }}

{{- define "lastcall.chartLabels" -}}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "lastcall.selectorLabels" -}}
app.kubernetes.io/name: lastcall
app.kubernetes.io/component: {{ . }}
{{- end }}

{{- /* The image of a component: include with (list .Values.agent.image $). */ -}}
{{- define "lastcall.image" -}}
{{- $image := index . 0 -}}{{- $root := index . 1 -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default $root.Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- /* A Role for each namespace, or a ClusterRole, bound to a ServiceAccount: include with (list "agent" GRANTS $). */ -}}
{{- define "lastcall.roles" -}}
{{- $component := index . 0 -}}{{- $root := index . 2 -}}
{{- $name := printf "lastcall-%s" $component -}}
{{- range $place := index . 1 | fromYamlArray }}
{{- $kind := ternary "ClusterRole" "Role" (empty $place.namespace) }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ $name }}
  {{- with $place.namespace }}
  namespace: {{ . }}
  {{- end }}
  labels: {{- include "lastcall.labels" (list $component $root) | nindent 4 }}
rules: {{- toYaml $place.rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ $name }}
  {{- with $place.namespace }}
  namespace: {{ . }}
  {{- end }}
  labels: {{- include "lastcall.labels" (list $component $root) | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ $name }}
    namespace: {{ $root.Release.Namespace }}
{{- end }}
{{- end }}
