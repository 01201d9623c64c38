{{/* Name of everything that belongs to the release; a release called `tandem` gives `tandem`. */}}
{{- define "tandem.fullname" -}}
{{- $name := ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) -}}
{{- trunc 50 $name | trimSuffix "-" -}}
{{- end -}}

{{- define "tandem.operator" -}}
{{ include "tandem.fullname" . }}-operator
{{- end -}}

{{- define "tandem.router" -}}
{{ include "tandem.fullname" . }}-router
{{- end -}}

{{- define "tandem.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{- define "tandem.labels" -}}
{{ include "tandem.selectorLabels" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* An image by its last name: `include "tandem.image" (list . "operator")`. */}}
{{- define "tandem.image" -}}
{{- $root := index . 0 -}}
{{- $repository := required "image.repository must be set: there is no public registry with Tandem's images. Build them from operator/Containerfile and workers/Containerfile, push them to a registry of yours and set image.repository to what stands before `/operator` and `/workers`." $root.Values.image.repository -}}
{{- printf "%s/%s:%s" (trimSuffix "/" $repository) (index . 1) (default $root.Chart.AppVersion $root.Values.image.tag) -}}
{{- end -}}

{{/* What the operator reads and writes of its own kinds. */}}
{{- define "tandem.rules.services" -}}
- apiGroups: [serving.tandem.dev]
  resources: [inferenceservices]
  verbs: [list, watch]
- apiGroups: [serving.tandem.dev]
  resources: [inferenceservices/status, workerpools/status]
  verbs: [patch]
# Children block their owner's deletion, which the API server lets only those do who may write its finalizers.
- apiGroups: [serving.tandem.dev]
  resources: [inferenceservices/finalizers]
  verbs: [update]
- apiGroups: [serving.tandem.dev]
  resources: [workerpools]
  verbs: [get, list, watch, create, patch, delete]
{{- end -}}

{{/* The children of a service. */}}
{{- define "tandem.rules.children" -}}
- apiGroups: [apps]
  resources: [deployments, controllerrevisions]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create, patch, delete]
# Never pruned while the service lives; Kubernetes removes them with it.
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [get, list, watch, create, patch]
# Made once, with the service's own token; the operator reads no Secret.
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [rolebindings]
  verbs: [get, list, watch, create, patch]
# Each service's router is bound to this role, and to no other.
- apiGroups: [rbac.authorization.k8s.io]
  resources: [clusterroles]
  resourceNames: [{{ include "tandem.router" . }}]
  verbs: [bind]
{{- end -}}

{{/* What the operator looks at and reports. */}}
{{- define "tandem.rules.observe" -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, list]
{{- end -}}
