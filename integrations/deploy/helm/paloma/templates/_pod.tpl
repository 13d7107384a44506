{{- define "paloma.labels" -}}
app.kubernetes.io/name: paloma
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* The pod of a role: (dict "root" $ "role" "api" "data" "emptyDir or nothing") */}}
{{- define "paloma.pod" -}}
terminationGracePeriodSeconds: 30
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
containers:
  - name: paloma
    image: "{{ .root.Values.image.repository }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}"
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    args: [{{ .role }}]
    ports:
      - name: http
        containerPort: 8080
    env:
      {{- with .root.Values.publicUrl }}
      - name: PALOMA_PUBLIC_URL
        value: {{ . | quote }}
      {{- end }}
      {{- range $name, $value := .root.Values.settings }}
      - name: {{ $name }}
        value: {{ $value | quote }}
      {{- end }}
    {{- with .root.Values.secret }}
    envFrom:
      - secretRef:
          name: {{ . }}
    {{- end }}
    livenessProbe:
      httpGet: { path: /healthz, port: http }
      periodSeconds: 30
      timeoutSeconds: 6
      failureThreshold: 5
    readinessProbe:
      httpGet: { path: /readyz, port: http }
      periodSeconds: 5
    startupProbe:
      httpGet: { path: /healthz, port: http }
      periodSeconds: 5
      failureThreshold: 60
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities:
        drop: [ALL]
    {{- with .root.Values.resources }}
    resources:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    volumeMounts:
      - name: data
        mountPath: /data
      - name: tmp
        mountPath: /tmp
volumes:
  - name: tmp
    emptyDir: {}
{{- end }}
