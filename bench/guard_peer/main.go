// What stands beside the guard in the bench: a webhook as barely as Go's net/http can. It reads the AdmissionReview and the
// pod in it into structs, as a webhook in Go does, and refuses every deletion. Arguments: certificate and key, PEM. It prints
// its port.
package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
)

type objectMeta struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace"`
	UID               string            `json:"uid"`
	ResourceVersion   string            `json:"resourceVersion"`
	Labels            map[string]string `json:"labels"`
	Annotations       map[string]string `json:"annotations"`
	DeletionTimestamp *string           `json:"deletionTimestamp"`
	OwnerReferences   []struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Name       string `json:"name"`
		UID        string `json:"uid"`
		Controller *bool  `json:"controller"`
	} `json:"ownerReferences"`
	ManagedFields []struct {
		Manager   string          `json:"manager"`
		Operation string          `json:"operation"`
		FieldsV1  json.RawMessage `json:"fieldsV1"`
	} `json:"managedFields"`
}

type container struct {
	Name  string   `json:"name"`
	Image string   `json:"image"`
	Args  []string `json:"args"`
	Env   []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"env"`
	Ports []struct {
		ContainerPort int32  `json:"containerPort"`
		Protocol      string `json:"protocol"`
	} `json:"ports"`
	Resources struct {
		Requests map[string]string `json:"requests"`
		Limits   map[string]string `json:"limits"`
	} `json:"resources"`
	VolumeMounts []struct {
		Name      string `json:"name"`
		MountPath string `json:"mountPath"`
		ReadOnly  bool   `json:"readOnly"`
	} `json:"volumeMounts"`
}

type pod struct {
	Metadata objectMeta `json:"metadata"`
	Spec     struct {
		NodeName                      string      `json:"nodeName"`
		TerminationGracePeriodSeconds *int64      `json:"terminationGracePeriodSeconds"`
		Containers                    []container `json:"containers"`
	} `json:"spec"`
	Status struct {
		Phase      string `json:"phase"`
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

type groupResource struct {
	Group    string `json:"group"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
}

type request struct {
	UID         string        `json:"uid"`
	Resource    groupResource `json:"resource"`
	SubResource string        `json:"subResource"`
	Name        string        `json:"name"`
	Namespace   string        `json:"namespace"`
	Operation   string        `json:"operation"`
	UserInfo    struct {
		Username string              `json:"username"`
		Groups   []string            `json:"groups"`
		Extra    map[string][]string `json:"extra"`
	} `json:"userInfo"`
	DryRun    *bool           `json:"dryRun"`
	Object    json.RawMessage `json:"object"`
	OldObject json.RawMessage `json:"oldObject"`
	Options   json.RawMessage `json:"options"`
}

type status struct {
	Status  string `json:"status"`
	Code    int32  `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type response struct {
	UID              string            `json:"uid"`
	Allowed          bool              `json:"allowed"`
	Status           *status           `json:"status,omitempty"`
	AuditAnnotations map[string]string `json:"auditAnnotations,omitempty"`
}

type review struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Request    *request  `json:"request,omitempty"`
	Response   *response `json:"response,omitempty"`
}

func answer(writer http.ResponseWriter, asked *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(writer, asked.Body, 16<<20))
	var whole review
	var deleted pod
	if err == nil {
		err = json.Unmarshal(body, &whole)
	}
	if err == nil && whole.Request == nil {
		err = fmt.Errorf("no request")
	}
	if err == nil {
		err = json.Unmarshal(whole.Request.OldObject, &deleted)
	}
	if err != nil {
		http.Error(writer, err.Error(), http.StatusBadRequest)
		return
	}
	message := fmt.Sprintf("pod %s/%s is held", deleted.Metadata.Namespace, deleted.Metadata.Name)
	said, err := json.Marshal(review{APIVersion: whole.APIVersion, Kind: whole.Kind, Response: &response{
		UID:              whole.Request.UID,
		Status:           &status{Status: "Failure", Code: 429, Reason: "TooManyRequests", Message: message},
		AuditAnnotations: map[string]string{"reason": "preparing"},
	}})
	if err != nil {
		http.Error(writer, err.Error(), http.StatusInternalServerError)
		return
	}
	writer.Header().Set("Content-Type", "application/json")
	_, _ = writer.Write(said)
}

func main() {
	pair, err := tls.LoadX509KeyPair(os.Args[1], os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	server := &http.Server{
		Handler: http.HandlerFunc(answer),
		// HTTP/1.1, as the guard.
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}},
	}
	log.Fatal(server.ServeTLS(listener, "", ""))
}
