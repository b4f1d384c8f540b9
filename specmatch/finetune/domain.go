package finetune

import (
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/specmatch/domain"
	"github.com/specmatch/specmatch/specmatch/model"
)

// NoteDomain notes the training molecules in the model's card; it does nothing for graphs. See package
// domain.
func (x *Examples) NoteDomain(m *model.Trained, s dataset.Split) (err error) {
	if x.Content != records.Molecules {
		return nil
	}
	var rows [][]string
	for _, i := range s.Train {
		r := x.Records[i]
		rows = append(rows, append([]string{r.SMILES}, r.Fields[:len(x.Targets)]...))
	}
	var fresh []string
	for _, i := range s.Valid {
		fresh = append(fresh, x.Records[i].SMILES)
	}
	m.Card.Domain, err = domain.New(x.Targets, rows, fresh, x.Set.Standard)
	return err
}
