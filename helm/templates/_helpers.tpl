{{/* Names, labels and sums. Everything that two templates say is said here. */}}

{{- define "sluice.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 36 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 36 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 36 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "sluice.clusterId" -}}
{{- default (include "sluice.fullname" .) .Values.clusterId -}}
{{- end -}}

{{/* What selects; never changes within a release. */}}
{{- define "sluice.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "sluice.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "sluice.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: sluice
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* metadata: of an object. Argument: root, name, component (or ""), annotations (or nil). */}}
{{- define "sluice.metadata" -}}
{{- $root := .root -}}
name: {{ .name }}
namespace: {{ $root.Release.Namespace }}
labels:
  {{- include "sluice.labels" $root | nindent 2 }}
  {{- with .component }}
  app.kubernetes.io/component: {{ . }}
  {{- end }}
  {{- with .pool }}
  sluice.io/pool: {{ . }}
  {{- end }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- $annotations := merge (dict) (default (dict) .annotations) $root.Values.commonAnnotations }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "sluice.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default .Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "sluice.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "sluice.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "sluice.tokenSecretName" -}}
{{- default (printf "%s-token" (include "sluice.fullname" .)) .Values.auth.existingSecret -}}
{{- end -}}

{{- define "sluice.managerUrl" -}}
http://{{ include "sluice.fullname" . }}-manager.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}:{{ .Values.manager.port }}
{{- end -}}

{{/* One map over another, key by key; lists and empty values replace too. Argument: [base, over]. */}}
{{- define "sluice.merge" -}}
{{- $merged := deepCopy (index . 0) -}}
{{- range $key, $value := index . 1 -}}
{{- $below := get $merged $key -}}
{{- if and (kindIs "map" $value) (kindIs "map" $below) -}}
{{- $_ := set $merged $key (include "sluice.merge" (list $below $value) | fromJson) -}}
{{- else -}}
{{- $_ := set $merged $key $value -}}
{{- end -}}
{{- end -}}
{{- toJson $merged -}}
{{- end -}}

{{/* All pools, complete, as {"pools": […]}: the defaults of `worker` under each pool's own keys. */}}
{{- define "sluice.pools" -}}
{{- $pools := list -}}
{{- $names := dict -}}
{{- range .Values.pools -}}
{{- if hasKey $names .name -}}
{{- fail (printf "pools: two pools are named %q; each needs a name of its own" .name) -}}
{{- end -}}
{{- $_ := set $names .name true -}}
{{- $pool := include "sluice.merge" (list $.Values.worker .) | fromJson -}}
{{- include "sluice.checkPool" $pool -}}
{{- $pools = append $pools $pool -}}
{{- end -}}
{{- dict "pools" $pools | toJson -}}
{{- end -}}

{{- define "sluice.checkPool" -}}
{{- $pool := . -}}
{{- $drain := include "sluice.milliseconds" $pool.drainTimeout | int64 -}}
{{- $readers := include "sluice.milliseconds" $pool.drainReadersTimeout | int64 -}}
{{- $needed := add (div (add $drain $readers 999) 1000) 40 -}}
{{- if gt $needed ($pool.terminationGracePeriodSeconds | int64) -}}
{{- fail (printf "pool %s: drainTimeout %s, drainReadersTimeout %s and 40 s to sync and close the disks are %d s, more than terminationGracePeriodSeconds %d: the worker would be killed while it drains; raise terminationGracePeriodSeconds or lower the drain times" $pool.name $pool.drainTimeout $pool.drainReadersTimeout $needed ($pool.terminationGracePeriodSeconds | int64)) -}}
{{- end -}}
{{- $disks := dict -}}
{{- range $disk := $pool.disks -}}
{{- if hasKey $disks $disk.name -}}
{{- fail (printf "pool %s: two disks are named %q" $pool.name $disk.name) -}}
{{- end -}}
{{- $_ := set $disks $disk.name true -}}
{{- end -}}
{{- if and $pool.autoscaling.enabled (lt ($pool.autoscaling.maxReplicas | int64) ($pool.autoscaling.minReplicas | int64)) -}}
{{- fail (printf "pool %s: autoscaling.maxReplicas is less than minReplicas" $pool.name) -}}
{{- end -}}
{{- if eq ($pool.dataPort | int64) ($pool.httpPort | int64) -}}
{{- fail (printf "pool %s: dataPort and httpPort are the same" $pool.name) -}}
{{- end -}}
{{- end -}}

{{/* A time such as 15s in milliseconds. */}}
{{- define "sluice.milliseconds" -}}
{{- $number := regexFind "^[0-9]+" . | int64 -}}
{{- $unit := regexFind "[a-z]+$" . -}}
{{- mul $number (get (dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000 "d" 86400000) $unit) -}}
{{- end -}}

{{/* A size such as 64mb in MiB, rounded up. */}}
{{- define "sluice.mebibytes" -}}
{{- $number := regexFind "^[0-9]+" . | int64 -}}
{{- $unit := regexFind "[a-z]+$" . -}}
{{- div (add (mul $number (get (dict "kb" 1 "mb" 1024 "gb" 1048576 "tb" 1073741824) $unit)) 1023) 1024 -}}
{{- end -}}

{{/*
Resources: requests and a limit for memory from the sum of its parts; what the user gives wins.
Argument: cpu, parts (sizes), mebibytes (more), resources.
*/}}
{{- define "sluice.resources" -}}
{{- $sum := .mebibytes | int64 -}}
{{- range .parts -}}
{{- $sum = add $sum (include "sluice.mebibytes" . | int64) -}}
{{- end -}}
{{- $memory := printf "%dMi" $sum -}}
{{- $derived := dict "requests" (dict "cpu" .cpu "memory" $memory) "limits" (dict "memory" $memory) -}}
{{- include "sluice.merge" (list $derived .resources) | fromJson | toYaml -}}
{{- end -}}

{{/* An HTTP probe. Argument: path, probe. */}}
{{- define "sluice.probe" -}}
httpGet:
  path: {{ .path }}
  port: http
periodSeconds: {{ .probe.periodSeconds }}
timeoutSeconds: {{ .probe.timeoutSeconds }}
failureThreshold: {{ .probe.failureThreshold }}
{{- end -}}

{{/*
A pod template, the same for manager and workers. Argument: root, component, pool (or ""), values (the
manager's or a pool's), config (the text whose change restarts the pod), and texts: environment, ports,
mounts, volumes, resources, main (the lines that are the main container's own).
*/}}
{{- define "sluice.podTemplate" -}}
{{- $root := .root -}}
{{- $values := .values -}}
metadata:
  labels:
    {{- /* Without the versions: a new chart alone restarts nobody. */}}
    {{- include "sluice.selectorLabels" $root | nindent 4 }}
    {{- with $root.Values.commonLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    app.kubernetes.io/component: {{ .component }}
    {{- with .pool }}
    sluice.io/pool: {{ . }}
    {{- end }}
    {{- with $values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    kubectl.kubernetes.io/default-container: {{ .component }}
    checksum/config: {{ .config | sha256sum }}
    {{- if and $root.Values.auth.enabled $root.Values.auth.token (not $root.Values.auth.existingSecret) }}
    checksum/token: {{ $root.Values.auth.token | sha256sum }}
    {{- end }}
    {{- with $root.Values.commonAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with $values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "sluice.serviceAccountName" $root }}
  automountServiceAccountToken: false
  # Kubernetes' variables for services are named like options of ours.
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ $values.terminationGracePeriodSeconds | int64 }}
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- toYaml $root.Values.podSecurityContext | nindent 4 }}
  {{- if $values.hostNetwork }}
  hostNetwork: true
  dnsPolicy: ClusterFirstWithHostNet
  {{- end }}
  {{- $priority := $values.priorityClassName | default (ternary (include "sluice.fullname" $root) "" $root.Values.priorityClass.create) }}
  {{- with $priority }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $values.runtimeClassName }}
  runtimeClassName: {{ . }}
  {{- end }}
  {{- with $values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- $spread := list }}
  {{- if and $values.spread (ne $values.spread "none") }}
  {{- $labels := merge (include "sluice.selectorLabels" $root | fromYaml) (dict "app.kubernetes.io/component" .component "sluice.io/pool" .pool) }}
  {{- $spread = append $spread (dict "maxSkew" 1 "topologyKey" "kubernetes.io/hostname" "whenUnsatisfiable" (ternary "DoNotSchedule" "ScheduleAnyway" (eq $values.spread "hard")) "labelSelector" (dict "matchLabels" $labels)) }}
  {{- end }}
  {{- $spread = concat $spread $values.topologySpreadConstraints }}
  {{- with $spread }}
  topologySpreadConstraints:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.extraInitContainers }}
  initContainers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: {{ .component }}
      image: {{ include "sluice.image" $root }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args:
        - {{ .component }}
      securityContext:
        {{- toYaml $root.Values.securityContext | nindent 8 }}
      env:
        - name: SLUICE_CONFIG
          value: /etc/sluice/sluice.yaml
        # npm's and Node's own files; the root file system is read-only.
        - name: HOME
          value: /tmp
        {{- .environment | nindent 8 }}
        {{- with $values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with $values.extraEnvFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        {{- .ports | nindent 8 }}
      startupProbe:
        {{- include "sluice.probe" (dict "path" "/healthz" "probe" $values.startupProbe) | nindent 8 }}
      readinessProbe:
        {{- include "sluice.probe" (dict "path" "/readyz" "probe" $values.readinessProbe) | nindent 8 }}
      livenessProbe:
        {{- include "sluice.probe" (dict "path" "/healthz" "probe" $values.livenessProbe) | nindent 8 }}
      resources:
        {{- .resources | nindent 8 }}
      volumeMounts:
        - name: config
          mountPath: /etc/sluice
          readOnly: true
        - name: tmp
          mountPath: /tmp
        {{- if $root.Values.auth.enabled }}
        - name: token
          mountPath: /etc/sluice-token
          readOnly: true
        {{- end }}
        {{- .mounts | nindent 8 }}
        {{- with $values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    {{- with $values.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ .configName }}
    - name: tmp
      emptyDir:
        sizeLimit: 64Mi
    {{- if $root.Values.auth.enabled }}
    - name: token
      secret:
        secretName: {{ include "sluice.tokenSecretName" $root }}
        defaultMode: 0440
        items:
          - key: {{ $root.Values.auth.secretKey }}
            path: token
    {{- end }}
    {{- with .volumes }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with $values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{/* The option that bounds what /metrics shows, where it is given; the processes' own options win. */}}
{{- define "sluice.metricsAllow" -}}
{{- $allow := dict -}}
{{- with .Values.monitoring.keepMetrics -}}
{{- $_ := set $allow "metrics-allow" . -}}
{{- end -}}
{{- toJson $allow -}}
{{- end -}}

{{/* The manager's configuration file. */}}
{{- define "sluice.managerConfig" -}}
{{- $workers := 0 -}}
{{- range (include "sluice.pools" . | fromJson).pools -}}
{{- $workers = add $workers (ternary .autoscaling.minReplicas .replicas .autoscaling.enabled | int64) -}}
{{- end -}}
{{- $set := dict "cluster-id" (include "sluice.clusterId" .) "host" "0.0.0.0" "port" (.Values.manager.port | int64) "state-directory" "/var/lib/sluice" -}}
{{- if .Values.auth.enabled -}}
{{- $_ := set $set "token-file" "/etc/sluice-token/token" -}}
{{- end -}}
{{- $given := include "sluice.merge" (list (merge (dict "expected-workers" $workers) (include "sluice.metricsAllow" . | fromJson)) .Values.manager.options) | fromJson -}}
{{- $options := include "sluice.merge" (list $given $set) | fromJson -}}
{{- /* So that commands in the manager's pod need no flags. */ -}}
{{- $command := dict "cluster-id" (include "sluice.clusterId" .) "manager" (printf "http://127.0.0.1:%d" (.Values.manager.port | int64)) -}}
{{- if .Values.auth.enabled -}}
{{- $_ := set $command "token-file" "/etc/sluice-token/token" -}}
{{- end -}}
{{- dict "remote-shuffle" (dict "manager" $options "command" $command) | toYaml -}}
{{- end -}}

{{/* A pool's configuration file. Argument: root, pool. */}}
{{- define "sluice.workerConfig" -}}
{{- $pool := .pool -}}
{{- $directories := list -}}
{{- range $pool.disks -}}
{{- $directories = append $directories (printf "[%s]/data/%s/sluice" (upper .kind) .name) -}}
{{- end -}}
{{- $set := dict "cluster-id" (include "sluice.clusterId" .root) "manager" (include "sluice.managerUrl" .root) "bind-host" "0.0.0.0" "data-port" ($pool.dataPort | int64) "http-port" ($pool.httpPort | int64) "data-directories" $directories "memory" $pool.memory "drain-timeout" $pool.drainTimeout "drain-readers-timeout" $pool.drainReadersTimeout -}}
{{- if .root.Values.auth.enabled -}}
{{- $_ := set $set "token-file" "/etc/sluice-token/token" -}}
{{- end -}}
{{- $options := include "sluice.merge" (list (include "sluice.merge" (list (include "sluice.metricsAllow" .root | fromJson) $pool.options) | fromJson) $set) | fromJson -}}
{{- dict "remote-shuffle" (dict "worker" $options) | toYaml -}}
{{- end -}}
