{{- define "weir.name" -}}
{{- ternary .Release.Name (printf "%s-weir" .Release.Name) (contains "weir" .Release.Name) | trunc 54 | trimSuffix "-" -}}
{{- end }}

{{- define "weir.labels" -}}
app.kubernetes.io/name: weir
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* Values that contradict one another are errors, which say what to do. */ -}}
{{- define "weir.check" -}}
{{- if and (not .Values.engine.secret) (gt (int .Values.replicas) 1) -}}
{{- fail "replicas above 1 need engine.secret: without it each has a memory of its own, and admits the whole limit" -}}
{{- end -}}
{{- if and (not .Values.insecure) (not .Values.tokens.secret) -}}
{{- fail "insecure: false needs tokens.secret, whose lines name the callers: by tokens, or by certificates (cn:NAME)" -}}
{{- end -}}
{{- if and .Values.tls.clientCA (or (not .Values.tls.secret) (not .Values.tokens.secret)) -}}
{{- fail "tls.clientCA needs tls.secret and tokens.secret: without a file of tokens every connection needs a certificate, and probes have none" -}}
{{- end -}}
{{- end }}
