{{/* The name of everything in the release; short enough for a label. */}}
{{- define "zerolayer.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 53 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels that select the operator's pods; they can never change. */}}
{{- define "zerolayer.selectorLabels" -}}
app.kubernetes.io/name: zerolayer-operator
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* Labels of every object. */}}
{{- define "zerolayer.labels" -}}
{{ include "zerolayer.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end -}}

{{- define "zerolayer.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}

{{/* The port of a URL. */}}
{{- define "zerolayer.port" -}}
{{- $authority := regexFind "^https?://[^/]+" . -}}
{{- regexFind "[0-9]+$" (regexFind ":[0-9]+$" $authority) | default (ternary "80" "443" (hasPrefix "http://" .)) -}}
{{- end -}}

{{/* The registries that the operator may ask. A host listed with and without TLS is an error: one would be asked. */}}
{{- define "zerolayer.registries" -}}
{{- $entries := dict -}}
{{- range .Values.registries -}}
{{- $host := regexReplaceAll "^https?://" . "" | lower -}}
{{- if hasKey $entries $host -}}
{{- fail (printf "registries: %s is listed twice, as %s and as %s; keep one of them" $host (get $entries $host) .) -}}
{{- end -}}
{{- $_ := set $entries $host . -}}
{{- end -}}
{{- join "," .Values.registries -}}
{{- end -}}

{{/* What the operator does in a namespace whose pools it serves. docs/operator.md says why, verb by verb. */}}
{{- define "zerolayer.poolRules" -}}
- apiGroups: [zerolayer.dev]
  resources: [zerolayerpools]
  verbs: [get, list, watch]
- apiGroups: [zerolayer.dev]
  resources: [zerolayerpools/status]
  verbs: [patch]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [apps]
  resources: [deployments/scale]
  verbs: [patch]
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [get, list, watch, create, patch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  {{- if .Values.networkPolicy.enabled }}
  verbs: [get, list, watch, create, patch, delete]
  {{- else }}
  # Those that were made before go.
  verbs: [list, delete]
  {{- end }}
{{- if .Values.pools.podMonitor.enabled }}
- apiGroups: [monitoring.coreos.com]
  resources: [podmonitors]
  verbs: [get, create, patch]
{{- end }}
{{- if .Values.keda.enabled }}
- apiGroups: [keda.sh]
  resources: [scaledobjects, triggerauthentications]
  verbs: [get, create, patch, delete]
{{- end }}
{{- if .Values.gateway.enabled }}
- apiGroups: [gateway.networking.k8s.io]
  resources: [httproutes]
  verbs: [get, create, patch, delete]
{{- end }}
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch, patch]
- apiGroups: [""]
  resources: [secrets, persistentvolumeclaims]
  verbs: [get]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, create, patch, delete]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, create, patch, delete]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
{{- end -}}
